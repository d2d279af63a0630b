//! Clients that others have written, each in a process of its own: kazoo, ZooKeeper's Java client and go-zookeeper.

use std::process::Command;

use crate::server::environment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Kazoo,
    Java,
    Go,
}

/// A program that is written for each library: in tests/support, in tests/java, and the recorder in tests/go, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Load,
    Recorder,
}

impl Library {
    /// Libraries that have a load.
    pub const WITH_LOAD: [Library; 2] = [Library::Kazoo, Library::Java];
    pub const ALL: [Library; 3] = [Library::Kazoo, Library::Java, Library::Go];

    /// The program, as this library has it; its arguments are to follow.
    pub fn command(self, program: Program) -> Command {
        match self {
            Library::Kazoo => {
                let module = match program {
                    Program::Load => "support.load",
                    Program::Recorder => "support.recorder",
                };
                let mut command = Command::new(environment("PYTHON_BIN"));
                command.args(["-m", module]).current_dir(env!("CARGO_MANIFEST_DIR"));
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                command
            }
            Library::Java => {
                let class_path =
                    format!("{}:{}", environment("JAVA_CLASSES"), environment("ZOOKEEPER_CLASSPATH"));
                let mut command = Command::new("java");
                command.args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-DLOG_LEVEL=OFF"]);
                command.arg("-cp").arg(class_path);
                command.arg(match program {
                    Program::Load => "paddock.Load",
                    Program::Recorder => "paddock.Recorder",
                });
                command
            }
            Library::Go => {
                assert_eq!(program, Program::Recorder, "there is no load of go-zookeeper");
                Command::new(environment("GO_CLIENTS"))
            }
        }
    }
}
