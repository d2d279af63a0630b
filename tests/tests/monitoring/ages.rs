//! Alerts for what is too old, or soon will be: a backup, and a certificate.

use std::fs;
use std::path::Path;
use std::time::Duration;

use paddock_client::CreateMode;
use paddock_tests::pem_stores::{pem_stores, pem_stores_until};

use crate::members::LoneMember;
use crate::prometheus::Prometheus;
use crate::{connect, wait_for, wait_for_silence, wait_until};

const BACKUP: &str = "PaddockBackupTooOld";
const CERTIFICATE: &str = "PaddockCertificateEnds";

#[tokio::test]
async fn backups_and_certificates_that_grow_old_are_told_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let (backups, stores) = (at("backups"), at("stores"));
    pem_stores_until(&stores, "clients", 1, Duration::from_hours(7 * 24));
    let settings = format!(
        "[backup]\nto = '{}'\nlog_interval_ms = 1000\n[tls]\nlisten = '127.0.0.1:0'\nkey_store = '{1}'\nclient_auth = 'none'\n",
        backups.display(),
        stores.join("1.pem").display(),
    );
    let member = LoneMember::start(&settings, "true").await;
    let prometheus = Prometheus::start(&[member.metrics_port]);
    wait_for(&prometheus, &[CERTIFICATE]).await;
    wait_until("there is a backup", || has_backup(&backups)).await;
    assert!(!prometheus.is_firing(BACKUP), "it is new");

    // A file stands where the directory was.
    fs::rename(&backups, at("away")).expect("move the backups away");
    fs::write(&backups, "").expect("write");
    wait_for(&prometheus, &[BACKUP]).await;
    let client = connect(&member.address.to_string()).await;
    client.create("/meanwhile", b"", CreateMode::Persistent).await.expect("create");
    fs::remove_file(&backups).expect("remove");
    fs::rename(at("away"), &backups).expect("bring the backups back");
    pem_stores(&stores, "clients", 1);
    wait_for_silence(&prometheus, &[BACKUP, CERTIFICATE]).await;
}

fn has_backup(place: &Path) -> bool {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let is_whole = entry.path().join("manifest.json").is_file();
        is_whole && !entry.file_name().to_string_lossy().starts_with('.')
    })
}
