use super::*;
use crate::disk::OsDisk;

const DIR: &str = "/data";

fn disk(seed: u64) -> MemDisk {
    let disk = MemDisk::new(seed);
    disk.create_dir(Path::new(DIR)).expect("create");
    disk
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// Checks the behaviour that both disks share.
fn check_files(disk: &dyn Disk, dir: &Path) {
    disk.create_dir(&dir.join("a/b")).expect("create directories");
    disk.create_dir(&dir.join("a/b")).expect("again");
    let dir = dir.join("a/b");
    let file = disk.create(&dir.join("one")).expect("create");
    file.write_at(b"world", 6).expect("write");
    file.write_at(b"hello", 0).expect("write");
    file.sync_data().expect("sync");
    disk.sync_dir(&dir).expect("sync directory");
    assert_eq!(file.len().expect("length"), 11);

    let segment = disk.create(&dir.join("segment")).expect("create");
    segment.write_at(&[0; 20_000], 0).expect("write");
    segment.sync_data().expect("sync");
    for (offset, byte) in [(0, 1), (100, 2), (9000, 3), (18_000, 4)] {
        segment.write_synced(&[byte; 2000], offset).expect("write and sync");
    }
    let mut found = [9; 20_000];
    assert_eq!(segment.read_at(&mut found, 0).expect("read"), 20_000);
    let expected = [1, 2, 0, 3, 0, 4].iter().zip([100, 2000, 6900, 2000, 7000, 2000]);
    assert_eq!(found.to_vec(), expected.flat_map(|(byte, count)| vec![*byte; count]).collect::<Vec<u8>>());
    segment.write_synced(&[5; 100], 19_950).expect("write and sync");
    assert_eq!(segment.len().expect("length"), 20_050, "it is longer if need be");
    disk.remove(&dir.join("segment")).expect("remove");

    assert_eq!(disk.create(&dir.join("one")).expect_err("exists").kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(
        disk.open(&dir.join("two"), Access::Read).expect_err("missing").kind(),
        io::ErrorKind::NotFound
    );
    disk.rename(&dir.join("one"), &dir.join("two")).expect("rename");
    assert_eq!(disk.list(&dir).expect("list"), ["two"]);

    let file = disk.open(&dir.join("two"), Access::Read).expect("open");
    let mut buffer = [9; 20];
    assert_eq!(file.read_at(&mut buffer, 3).expect("read"), 8);
    assert_eq!(&buffer[..8], b"lo\0world");
    assert_eq!(file.read_at(&mut buffer, 11).expect("read"), 0);
    file.write_at(b"x", 0).expect_err("opened for reading");

    disk.remove(&dir.join("two")).expect("remove");
    assert!(disk.list(&dir).expect("list").is_empty());
    disk.list(&dir.join("none")).expect_err("no such directory");
}

#[test]
fn both_disks_behave_alike() {
    let temp = tempfile::tempdir().expect("temporary directory");
    check_files(&OsDisk, temp.path());
    check_files(&disk(1), Path::new(DIR));
}

#[test]
fn synced_data_and_names_survive_a_crash() {
    for seed in 0..50 {
        let disk = disk(seed);
        let file = disk.create(&path("a")).expect("create");
        file.write_at(&[1; 2000], 0).expect("write");
        file.sync_data().expect("sync");
        disk.sync_dir(Path::new(DIR)).expect("sync directory");
        file.write_at(&[2; 600], 1000).expect("write");
        disk.crash();

        let found = disk.contents(&path("a")).expect("the name was synced");
        assert_eq!(found.len(), 2000);
        assert_eq!(found[..1000], [1; 1000]);
        assert_eq!(found[1600..], [1; 400]);
        assert!(found[1000..1600].iter().all(|byte| [1, 2].contains(byte)));
        file.write_at(b"x", 0).expect_err("the process has ended");
    }
}

#[test]
fn unsynced_data_and_names_sometimes_survive_and_sometimes_not() {
    let (mut survived, mut names) = (Vec::new(), Vec::new());
    for seed in 0..100 {
        let disk = disk(seed);
        let file = disk.create(&path("a")).expect("create");
        disk.sync_dir(Path::new(DIR)).expect("sync directory");
        file.write_at(&[1; 1024], 0).expect("write");
        disk.rename(&path("a"), &path("b")).expect("rename");
        disk.crash();
        let name = disk.list(Path::new(DIR)).expect("list").pop().expect("one of the names");
        survived
            .push(disk.contents(&path(&name)).expect("contents").iter().filter(|byte| **byte == 1).count());
        names.push(name);
    }
    for pattern in [0, 512, 1024] {
        assert!(survived.contains(&pattern), "never {pattern} bytes");
    }
    assert!(survived.iter().any(|bytes| bytes % 512 != 0), "no sector was torn");
    assert!(names.contains(&"a".to_owned()) && names.contains(&"b".to_owned()));
}

#[test]
fn a_failed_sync_can_lose_data_that_a_later_sync_seems_to_save() {
    let lost = (0..50).any(|seed| {
        let disk = disk(seed);
        let file = disk.create(&path("a")).expect("create");
        disk.sync_dir(Path::new(DIR)).expect("sync directory");
        disk.fail_after(DiskFault::Sync, 0);
        file.write_at(&[1; 512], 0).expect("write");
        file.sync_data().expect_err("told to fail");
        file.sync_data().expect("only one fails");
        assert_eq!(disk.contents(&path("a")).expect("contents"), [1; 512]);
        disk.crash();
        disk.contents(&path("a")).expect("contents") != [1; 512]
    });
    assert!(lost);
}

#[test]
fn a_full_disk_takes_what_fits() {
    let disk = disk(1);
    let file = disk.create(&path("a")).expect("create");
    disk.set_capacity(Some(100));
    file.write_at(&[1; 60], 0).expect("fits");
    assert_eq!(file.write_at(&[2; 60], 60).expect_err("full").kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.used_bytes(), 100);
    file.write_at(&[3; 100], 0).expect("needs no room");
    disk.set_capacity(None);
    file.write_at(&[2; 60], 60).expect("there is room again");
}

#[test]
fn the_same_seed_gives_the_same_disk() {
    let run = |seed| {
        let disk = disk(seed);
        let file = disk.create(&path("a")).expect("create");
        disk.sync_dir(Path::new(DIR)).expect("sync directory");
        file.write_at(&[7; 5000], 0).expect("write");
        disk.crash();
        disk.contents(&path("a"))
    };
    assert_eq!(run(3), run(3));
    assert!((0..10).any(|seed| run(seed) != run(3)));
}
