//! One server of a test.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use paddock_server::{Config, Server};
use tempfile::TempDir;

use crate::StartError;
use crate::ports::{free_ports, loopback, with_free_ports};

const WORD_WITHIN: Duration = Duration::from_secs(10);

/// A server in this process. It ends when it is dropped, and its data with it.
#[derive(Debug)]
pub struct TestServer {
    config: Config,
    server: Option<Server>,
    directory: TempDir,
}

impl TestServer {
    /// Starts a server that is empty, on a free port.
    ///
    /// # Errors
    /// [`StartError::Directory`] and [`StartError::Server`]. Ports that others take meanwhile are replaced by others first, ten times at most.
    pub fn start() -> Result<TestServer, StartError> {
        TestServer::start_with(|_| {})
    }

    /// Starts a server with other settings than those by default. Address and directory are chosen already, and may be changed.
    ///
    /// # Errors
    /// Those of [`TestServer::start`].
    pub fn start_with(adjust: impl Fn(&mut Config)) -> Result<TestServer, StartError> {
        with_free_ports(|| TestServer::start_at(free_ports(1)?[0], &adjust))
    }

    pub(crate) fn start_at(port: u16, adjust: impl FnOnce(&mut Config)) -> Result<TestServer, StartError> {
        let directory =
            tempfile::Builder::new().prefix("paddock-").tempdir().map_err(StartError::Directory)?;
        let mut config = Config { listen: loopback(port), ..Config::new(directory.path().join("data")) };
        adjust(&mut config);
        let mut server = TestServer { config, server: None, directory };
        server.restart()?;
        Ok(server)
    }

    /// Address where clients connect; a restart keeps it.
    pub fn address(&self) -> SocketAddr {
        self.config.listen
    }

    /// `127.0.0.1:port`, as clients want it.
    pub fn hosts(&self) -> String {
        self.address().to_string()
    }

    /// Directory of its data.
    pub fn data_directory(&self) -> &Path {
        &self.config.data_dir
    }

    /// False after `stop`, and if the server has failed.
    pub fn is_running(&self) -> bool {
        self.server.as_ref().is_some_and(|server| !server.has_failed())
    }

    /// Ends the server in good order. Data and port are kept for `restart`.
    ///
    /// # Errors
    /// [`StartError::Server`] with the reason for which it had failed before. It is stopped all the same.
    pub fn stop(&mut self) -> Result<(), StartError> {
        match self.server.take() {
            Some(server) => Ok(server.shutdown()?),
            None => Ok(()),
        }
    }

    /// Starts the server again on the same port and the same data, after it has been stopped if it runs.
    ///
    /// # Errors
    /// [`StartError::Server`] if it cannot be stopped in good order, or not be started, as on a port that another process has taken.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.stop()?;
        let server = Server::start(self.config.clone())?;
        // Port 0, if that was asked for, has become a port.
        self.config.listen = server.address();
        self.server = Some(server);
        Ok(())
    }

    /// Sends a four-letter word, and returns the answer. Words other than `srvr` have to be allowed: `config.words = WordList::All`.
    ///
    /// # Errors
    /// Those of the connection: the server is not reached or says nothing within ten seconds.
    pub fn word(&self, word: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), WORD_WITHIN)?;
        stream.set_read_timeout(Some(WORD_WITHIN))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// `leader`, `follower` or `standalone`; none if it has no contact to a quorum, or does not answer.
    pub(crate) fn mode(&self) -> Option<String> {
        let answer = self.word("srvr").ok()?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    /// Directory that is removed when the server is dropped.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // The data is removed next, so it does not matter that the server could not end in good order.
        let _ = self.stop();
    }
}
