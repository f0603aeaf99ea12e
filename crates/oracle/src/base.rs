//! What an Oracle knows of the network before reports and measurements: a file that a collector rewrites, and the time of day.

use policy::{NetworkView, Zone};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;
use units::Time;

/// Periods after which a view that was not written is ignored.
const STALE: u32 = 2;
/// Longest file of a view, bytes.
const VIEW_MAX: u64 = 64 << 20;

/// What the view's file says of the network, or why it is not used.
pub fn base(path: Option<&Path>, period: Time) -> Result<NetworkView, String> {
    let Some(path) = path else { return Ok(NetworkView::default()) };
    let name = path.display();
    let unreadable = |error: io::Error| format!("{name}: {error}; links are not known");
    let about = fs::metadata(path).map_err(unreadable)?;
    let age = about.modified().and_then(|at| at.elapsed().map_err(io::Error::other)).unwrap_or_default();
    if age > Duration::from_nanos(period.as_ns()) * STALE {
        return Err(format!("{name} is older than {STALE} periods and is ignored"));
    }
    if about.len() > VIEW_MAX {
        return Err(format!("{name} has {} bytes, of at most {VIEW_MAX}; links are not known", about.len()));
    }
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(VIEW_MAX).read_to_string(&mut text)).map_err(unreadable)?;
    NetworkView::from_json(&text).map_err(|error| format!("{name}:{error}; links are not known"))
}

/// Hour and weekday in the policy's time zone, unless the view has them.
pub fn with_local_time(view: NetworkView, zone: &Zone, unix_s: u64) -> NetworkView {
    let local = zone.at(unix_s as i64);
    NetworkView { hour: view.hour.or(Some(local.hour)), weekday: view.weekday.or(Some(local.weekday)), ..view }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn a_view_that_is_no_longer_written_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.json");
        fs::write(&path, r#"{"links": [{"name": "a", "utilization": 0.5}]}"#).unwrap();
        assert_eq!(base(Some(&path), Time::from_secs(60)).unwrap().links.len(), 1);
        let old = SystemTime::now() - Duration::from_secs(121);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("is older than 2 periods"));
        File::create(&path).unwrap().set_len(VIEW_MAX + 1).unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("of at most"));
        fs::write(&path, "{").unwrap();
        assert!(base(Some(&path), Time::from_secs(60)).unwrap_err().contains("view.json:1:"));
        assert!(base(Some(&folder.path().join("none")), Time::from_secs(60)).is_err());
        assert_eq!(base(None, Time::from_secs(60)), Ok(NetworkView::default()));
    }
}
