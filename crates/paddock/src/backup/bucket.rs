//! A bucket of S3, or of a store that speaks its protocol.
//!
//! Credentials and endpoint are those of the variables that other programs read, `AWS_ACCESS_KEY_ID` and its kin. An object is there as a whole or not at
//! all, and the manifest of a backup comes last.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path as FilePath;
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, ObjectStore as _, ObjectStoreExt as _, RetryConfig, WriteMultipart,
};
use paddock_config::printable;
use tokio::runtime::Runtime;

use super::failure::BackupFailure;

/// Bytes of a part of a large object. A store takes ten thousand of them.
const PART_BYTES: usize = 16 << 20;
/// Parts that are on their way at a time.
const PARTS_AT_ONCE: usize = 4;
/// Time after which a connection is not waited for on which nothing comes.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a request that fails is tried again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
const RETRIES: usize = 5;

/// Objects below a prefix of a bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: AmazonS3,
    /// As the person named it.
    url: String,
    prefix: Path,
    runtime: Runtime,
}

impl Bucket {
    /// The bucket that `s3://BUCKET/PREFIX` names.
    pub(crate) fn open(url: &str) -> Result<Bucket, BackupFailure> {
        let wrong = |error: String| BackupFailure::Bucket { action: "use", place: url.to_owned(), error };
        let rest = url.strip_prefix("s3://").unwrap_or(url).trim_end_matches('/');
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(wrong("expected s3://BUCKET/PREFIX".to_owned()));
        }
        let prefix = Path::parse(prefix).map_err(|error| wrong(error.to_string()))?;
        let options = ClientOptions::new()
            // A large object takes as long as it takes.
            .with_timeout_disabled()
            .with_read_timeout(READ_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_allow_http(true);
        let retry =
            RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_client_options(options)
            .with_retry(retry)
            .build()
            .map_err(|error| wrong(in_words(&error.to_string())))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(BackupFailure::io("start", "the runtime"))?;
        Ok(Bucket { store, url: format!("s3://{rest}"), prefix, runtime })
    }

    pub(super) fn shown(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.prefix))
    }

    fn failed<'a>(&'a self, action: &'static str, name: &'a str) -> impl FnOnce(Error) -> BackupFailure + 'a {
        move |error| match error {
            Error::NotFound { .. } => BackupFailure::Missing { place: self.shown(name) },
            error => {
                BackupFailure::Bucket { action, place: self.shown(name), error: in_words(&error.to_string()) }
            }
        }
    }

    /// Names of the backups that have a manifest.
    pub(super) fn names(&self) -> Result<Vec<String>, BackupFailure> {
        let listed = self.runtime.block_on(async {
            let mut objects = self.store.list(Some(&self.prefix));
            let mut names = Vec::new();
            while let Some(object) = objects.next().await {
                let location = object?.location;
                let parts: Vec<_> = location.prefix_match(&self.prefix).into_iter().flatten().collect();
                if let [name, file] = &parts[..]
                    && file.as_ref() == super::manifest::NAME
                {
                    names.push(name.as_ref().to_owned());
                }
            }
            Ok(names)
        });
        listed.map_err(self.failed("list", ""))
    }

    /// A small object, or `NotFound`.
    pub(super) fn get_short(&self, name: &str) -> Result<io::Result<Vec<u8>>, BackupFailure> {
        let got = self.runtime.block_on(async {
            let found = self.store.get(&self.path(name)).await?;
            if found.meta.size > super::manifest::BYTES_MAX {
                return Ok(Err(io::Error::other("it is larger than any manifest")));
            }
            Ok(Ok(found.bytes().await?.to_vec()))
        });
        match got {
            Err(Error::NotFound { .. }) => Ok(Err(io::ErrorKind::NotFound.into())),
            got => got.map_err(self.failed("read", name)),
        }
    }

    /// Writes an object into a new file.
    pub(super) fn get_file(&self, name: &str, to: &FilePath) -> Result<(), BackupFailure> {
        let written = |source| BackupFailure::Io { action: "write", place: to.display().to_string(), source };
        self.runtime.block_on(async {
            let mut file = File::create_new(to).map_err(written)?;
            let found = self.store.get(&self.path(name)).await.map_err(self.failed("read", name))?;
            let mut pieces = found.into_stream();
            while let Some(piece) = pieces.next().await {
                file.write_all(&piece.map_err(self.failed("read", name))?).map_err(written)?;
            }
            Ok(())
        })
    }

    /// Makes an object of bytes.
    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), BackupFailure> {
        let put = self.runtime.block_on(self.store.put(&self.path(name), bytes.into()));
        put.map(drop).map_err(self.failed("write", name))
    }

    /// Makes an object of a file.
    pub(super) fn put_file(&self, name: &str, from: &FilePath) -> Result<(), BackupFailure> {
        let read = |source| BackupFailure::Io { action: "read", place: from.display().to_string(), source };
        let mut file = File::open(from).map_err(read)?;
        if file.metadata().map_err(read)?.len() <= PART_BYTES as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(read)?;
            return self.put(name, bytes);
        }
        self.runtime.block_on(async {
            let upload =
                self.store.put_multipart(&self.path(name)).await.map_err(self.failed("write", name))?;
            let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
            let mut piece = vec![0; 1 << 20];
            loop {
                let length = match file.read(&mut piece) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(source) => {
                        // Parts without an object cost money until they are given up.
                        let _ = writer.abort().await;
                        return Err(read(source));
                    }
                };
                writer.wait_for_capacity(PARTS_AT_ONCE).await.map_err(self.failed("write", name))?;
                writer.write(&piece[..length]);
            }
            writer.finish().await.map(drop).map_err(self.failed("write", name))
        })
    }

    /// Removes a backup: one object first, and then all others of it.
    pub(super) fn remove(&self, name: &str, first: &str) -> Result<(), BackupFailure> {
        let removed = self.runtime.block_on(async {
            self.store.delete(&self.path(&format!("{name}/{first}"))).await?;
            let dir = self.path(name);
            let mut objects = self.store.list(Some(&dir));
            let mut locations = Vec::new();
            while let Some(object) = objects.next().await {
                locations.push(object?.location);
            }
            for location in locations {
                self.store.delete(&location).await?;
            }
            Ok(())
        });
        removed.map_err(self.failed("remove", name))
    }
}

/// An error in one line. Its causes stand in it; of a store's answer in XML the code and the message are told.
fn in_words(error: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = error.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0)
    };
    let answer = ["Code", "Message"].map(element).into_iter().flatten().collect::<Vec<_>>().join(": ");
    let before = error.find("<?xml").or_else(|| error.find("<Error>")).map_or(error, |begin| &error[..begin]);
    let text = format!("{before} {answer}").split_whitespace().collect::<Vec<_>>().join(" ");
    printable(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_a_store_is_one_line() {
        let error = "Generic S3 error: 403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code>\n<Message>No\u{1b}[1m</Message></Error>";
        assert_eq!(in_words(error), "Generic S3 error: 403 Forbidden: AccessDenied: No\\u{1b}[1m");
        assert_eq!(in_words("connection\nrefused"), "connection refused");
    }

    #[test]
    fn a_bucket_has_a_name() {
        assert!(matches!(Bucket::open("s3:///x"), Err(BackupFailure::Bucket { .. })));
    }
}
