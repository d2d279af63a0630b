//! Version of the server, for the four-letter words.

/// The version of ZooKeeper whose behaviour is offered. Clients and scripts decide by it what they may ask.
pub(crate) const VERSION: &str = concat!("3.9.5-paddock-", env!("CARGO_PKG_VERSION"));

/// The date of this version, in seconds since 1970: 2026-11-22. It is no clock's reading, so that the same sources give the same
/// program; its packagers may name another date in `SOURCE_DATE_EPOCH`.
const DATE: u64 = 1_795_305_600;

/// `VERSION, built on 01/02/2006 15:04 UTC`: go-zookeeper reads this form of a date in all its versions.
pub(crate) fn version_and_date() -> String {
    let named = option_env!("SOURCE_DATE_EPOCH").and_then(|seconds| seconds.parse().ok());
    format!("{VERSION}, built on {}", date(named.unwrap_or(DATE)))
}

/// Month, day and year, then hours and minutes, in UTC.
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let (year, month, day) = civil(days);
    format!("{month:02}/{day:02}/{year:04} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// A time in seconds since 1970 as Java prints a date: `Tue Nov 24 22:05:39 UTC 2026`.
pub(crate) fn java_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[month as usize - 1]);
    format!("{weekday} {month} {day:02} {:02}:{:02}:{:02} UTC {year}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Year, month and day of a day since 1970-01-01. The year is counted from March, so that a leap day is its last.
pub(crate) fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (400 * era + year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_printed_as_go_zookeeper_reads_it() {
        for (seconds, text) in [
            (0, "01/01/1970 00:00 UTC"),
            (951_782_399, "02/28/2000 23:59 UTC"),
            (951_782_400, "02/29/2000 00:00 UTC"),
            (1_136_214_245, "01/02/2006 15:04 UTC"),
            (1_709_251_199, "02/29/2024 23:59 UTC"),
            (1_709_251_200, "03/01/2024 00:00 UTC"),
            (4_107_542_400, "03/01/2100 00:00 UTC"),
            (DATE, "11/22/2026 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn the_version_stands_before_the_date() {
        let text = version_and_date();
        let (version, date) = text.split_once(", built on ").expect("both are there");
        assert_eq!(version, VERSION);
        assert!(version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte)));
        assert_eq!(date.len(), "01/02/2006 15:04 UTC".len());
    }
}
