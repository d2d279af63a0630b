//! The RPM, by `rpmbuild` from `packaging/paddock.spec`.

use std::fs;
use std::path::Path;

use super::folders::renew;
use super::source::{DistSource, RELEASE};
use super::stage::{self, CONFIGURATION, CompletionPlaces, Parts, StagedFile};
use super::target::{GLIBC, Target};
use super::tools;
use crate::layout::Layout;
use crate::process::Error;

const PLACES: CompletionPlaces = CompletionPlaces { zsh: "usr/share/zsh/site-functions" };
/// `rpmbuild` compiles nothing and changes nothing here: it packs, and takes the time from the variables.
const MACROS: [&str; 5] = [
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "_buildhost reproducible",
    "_build_id_links none",
    "__os_install_post %{nil}",
];

/// Writes the package of a target.
pub(super) fn write(
    layout: &Layout,
    source: &DistSource,
    parts: &Parts,
    target: Target,
    work: &Path,
    output: &Path,
) -> Result<(), Error> {
    let mut files = stage::installed(parts, &PLACES)?;
    let unit = parts.root.join("packaging/paddock.service");
    files.push(StagedFile::copy("usr/lib/systemd/system/paddock.service", &unit)?);
    files.push(StagedFile::copy("usr/share/licenses/paddock/LICENSE", &parts.root.join("LICENSE"))?);

    let place = work.join("rpm");
    renew(&place)?;
    let (list, specification) = (place.join("files"), place.join("paddock.spec"));
    fs::write(&list, listed(&files)).map_err(Error::io("write", &list))?;
    let release = RELEASE.to_string();
    let files_from = list.display().to_string();
    let words =
        [("VERSION", source.version), ("RELEASE", &release), ("GLIBC", GLIBC), ("FILES", &files_from)];
    let text = stage::filled(&parts.root, "paddock.spec", &words)?;
    fs::write(&specification, text).map_err(Error::io("write", &specification))?;
    let tree = place.join("tree");
    stage::write(&files, &tree, source.epoch)?;
    let state = tree.join("var/lib/paddock");
    fs::create_dir_all(&state).map_err(Error::io("create", &state))?;
    stage::set_time(&state, source.epoch)?;

    let rpm = source.with_variables(tools::rpm(layout, "rpmbuild")?.program());
    let mut rpm = rpm.args(["-bb", "--target", target.machine(), "--buildroot"]).arg(&tree);
    let places = [format!("_topdir {}", place.display()), format!("_rpmdir {}", output.display())];
    // Without directories of architectures.
    let name = "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm";
    for setting in MACROS.into_iter().chain(places.iter().map(String::as_str)).chain([name]) {
        rpm = rpm.args(["--define", setting]);
    }
    rpm.env("HOME", &place).arg(&specification).log_to(&layout.log("rpmbuild")).run()
}

/// Lines of the specification's list of files.
fn listed(files: &[StagedFile]) -> String {
    let mut lines =
        "%dir %attr(0755, root, root) /etc/paddock\n%dir %attr(0700, paddock, paddock) /var/lib/paddock\n"
            .to_owned();
    for StagedFile { path, is_program, .. } in files {
        let mode = if *is_program { "0755" } else { "0644" };
        let kind = match path.as_str() {
            path if CONFIGURATION.contains(&path) => "%config(noreplace) ",
            path if path.starts_with("usr/share/doc/") || path.starts_with("usr/share/man/") => "%doc ",
            path if path.starts_with("usr/share/licenses/") => "%license ",
            _ => "",
        };
        lines += &format!("{kind}%attr({mode}, root, root) /{path}\n");
    }
    lines
}
