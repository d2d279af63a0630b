//! Facts of the machine that a reader of figures must know.

use std::fs;
use std::path::Path;
use std::thread;

use crate::layout::Layout;
use crate::process::{Error, Program};

/// The machine and the versions, as a Markdown list.
pub(crate) fn facts(layout: &Layout, results: &Path, with_zookeeper: bool) -> Result<String, Error> {
    let mut servers = Program::new(layout.paddock()).arg("--version").output()?;
    if with_zookeeper {
        servers += &format!("; {}", zookeeper(layout)?);
    }
    let file_system = Program::new("df").arg("--output=fstype").arg(results).output()?;
    let cores = thread::available_parallelism().map_or(0, |cores| cores.get());
    Ok(format!(
        "- Machine: {cores} cores of {}, {} of memory, {} on {}\n- Servers: {servers}\n",
        cpu(&read("/proc/cpuinfo")?),
        memory(&read("/proc/meminfo")?),
        file_system.lines().last().unwrap_or("unknown file system"),
        kernel(&read("/proc/sys/kernel/osrelease")?),
    ))
}

fn zookeeper(layout: &Layout) -> Result<String, Error> {
    let pom = layout.tests("java").join("pom.xml");
    let pom = fs::read_to_string(&pom).map_err(Error::io("read", &pom))?;
    let version =
        between(&pom, "<zookeeper.version>", "</zookeeper.version>").unwrap_or("of unknown version");
    let java = Program::new("java").arg("--version").output()?;
    Ok(format!("Apache ZooKeeper {version} on {}", java.lines().next().unwrap_or("unknown Java")))
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path.as_ref()))
}

fn cpu(info: &str) -> &str {
    let model = info.lines().find(|line| line.starts_with("model name"));
    model.and_then(|line| line.split_once(": ")).map_or("an unnamed CPU", |(_, model)| model.trim())
}

fn memory(info: &str) -> String {
    let kib = between(info, "MemTotal:", "kB").and_then(|kib| kib.trim().parse::<f64>().ok());
    kib.map_or("unknown size".to_owned(), |kib| format!("{:.0} GiB", kib / f64::from(1 << 20)))
}

/// Without what a distribution adds.
fn kernel(release: &str) -> String {
    format!("Linux {}", release.trim().split('-').next().unwrap_or_default())
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::{cpu, kernel, memory};

    #[test]
    fn facts_are_read_from_the_kernels_words() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t: fpu\n"), "AMD EPYC");
        assert_eq!(cpu("processor\t: 0\n"), "an unnamed CPU");
        assert_eq!(memory("MemTotal:       24690616 kB\nMemFree: 1 kB\n"), "24 GiB");
        assert_eq!(kernel("6.18.5-cloud-amd64\n"), "Linux 6.18.5");
    }
}
