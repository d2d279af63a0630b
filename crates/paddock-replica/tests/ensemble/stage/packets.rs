//! Packets of connections as lines of a story.

use paddock_proto::jute::Reader;
use paddock_proto::{ReplyHeader, WatchEvent, Xid, frame};
use paddock_state::Parcel;

/// Longer texts are told by their length.
const TEXT_MAX: usize = 60;

/// One line for each packet of a parcel.
pub(super) fn tell(parcel: Parcel<'_>) -> Vec<String> {
    match parcel {
        Parcel::Reply(_, mut bytes) | Parcel::Event(mut bytes) | Parcel::SharedEvent(mut bytes) => {
            let mut lines = Vec::new();
            while let Some((body, len)) = frame::split(bytes, i32::MAX).expect("a member writes whole frames")
            {
                lines.push(tell_packet(body));
                bytes = &bytes[len..];
            }
            lines
        }
        Parcel::Connected(connected, _) if connected.read_only => vec!["connected to read".into()],
        Parcel::Connected(..) => vec!["connected".into()],
        Parcel::Expired => vec!["expired".into()],
        Parcel::Close => vec!["close".into()],
    }
}

fn tell_packet(body: &[u8]) -> String {
    let mut reader = Reader::new(body);
    let header = ReplyHeader::decode(&mut reader).expect("a reply has a header");
    if header.xid == Xid::NOTIFICATION {
        let event = WatchEvent::decode(header.zxid, reader.rest()).expect("a notification has an event");
        return format!("{:?} {}", event.kind, event.path);
    }
    match header.error {
        Some(error) => format!("#{} {error:?}", header.xid.0),
        // The first field of a getData reply; of a create's, the path.
        None if reader.rest().len() > 4 => {
            let text = reader.buffer().ok().flatten().map(String::from_utf8_lossy).unwrap_or_default();
            if text.starts_with("server.") {
                return format!("#{} {}", header.xid.0, tell_members(&text));
            }
            if text.len() > TEXT_MAX {
                return format!("#{} {} bytes", header.xid.0, text.len());
            }
            format!("#{} {text:?}", header.xid.0)
        }
        None => format!("#{} ok", header.xid.0),
    }
}

/// The numbers in a configuration, as in `config 1,2,3,4:observer`.
fn tell_members(configuration: &str) -> String {
    let lines = configuration.lines().filter_map(|line| line.strip_prefix("server."));
    let members = lines.filter_map(|line| {
        let (number, rest) = line.split_once('=')?;
        Some(format!("{number}{}", if rest.contains(":observer") { ":observer" } else { "" }))
    });
    format!("config {}", members.collect::<Vec<_>>().join(","))
}
