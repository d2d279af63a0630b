//! Greeting of a new connection: the end that dials says hello, the other one answers.
//!
//! Both are 58 bytes, little-endian:
//! ```text
//!  0 [8] magic       one for hellos, one for answers
//!  8 u16 version
//! 10 u8  from        the speaker's number; 0 for one that is not 1 to 255, which follows below
//! 11 u8  to          in a hello: whom it wants to reach, likewise; in an answer: the verdict
//! 12 u64 cluster     the speaker's cluster id; 0 while it is not known
//! 20 u64 nonce       tells this connection from all others
//! 28 u64 process     tells the speaker's process from all others, those with the same number included
//! 36 [16] address    in the answer to a member that runs in another process already: where that one calls from, as an
//! 52 u16 port        IPv6 address; else zeros, but for the following
//! 36 u32 from        the speaker's number, if the byte above is 0 and there is no address
//! 40 u32 to          in a hello: the number of whom it wants to reach, if the byte above is 0
//! 54 u32 crc         CRC-32C of the bytes above
//! ```
//! Magic, version and the place of the verdict stay as they are in every version, so that members of different versions
//! can tell each other why they do not talk. Builds that know numbers from 1 to 255 only speak the same version: to them other numbers are 0,
//! which is no member's. Nothing is said to who did not show the magic.

use std::net::{Ipv6Addr, SocketAddr};

use crc32c::{crc32c, crc32c_append};
use paddock_proto::{MemberNumber, narrow_member_number};

use super::frame::FramePosition;

pub(super) const GREETING_BYTES: usize = 58;
pub(super) const MAGIC_BYTES: usize = 8;
/// Offset of the length of the rest.
pub(super) const VERSION_END: usize = MAGIC_BYTES + 2;
const CRC_AT: usize = 54;
/// First bytes of a connection with TLS.
const TLS_HANDSHAKE: [u8; 2] = [22, 3];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GreetingKind {
    Hello,
    Answer,
}

impl GreetingKind {
    const fn magic(self) -> [u8; MAGIC_BYTES] {
        match self {
            GreetingKind::Hello => *b"PADhello",
            GreetingKind::Answer => *b"PADlinks",
        }
    }
}

/// Judgement of the accepting side on a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub(super) enum Verdict {
    #[error("welcome")]
    Welcome = 0,
    /// The answer to a knock: the side with the higher number dials, unless it does not reach the other one. Then that one is welcome.
    #[error("it will call")]
    WillCall = 1,
    #[error("the two members speak different versions: run the same release on both")]
    OtherVersion = 2,
    #[error("the two members belong to different ensembles: check addresses and data directories")]
    OtherCluster = 3,
    #[error("the member that was called is not the one that was meant: check its address")]
    OtherRecipient = 4,
    #[error(
        "the calling member is not on the list of the called one: add it by reconfig or by the configurations of most members; after \
         --recover, start it with an empty data directory"
    )]
    UnknownMember = 5,
    #[error("the two members have the same number: give each its own")]
    SameNumber = 6,
    #[error("the called member takes calls with TLS only: turn TLS on at the calling one")]
    TlsNeeded = 7,
    #[error(
        "the certificate of the calling member is not for the host that it has in the list of the called one: have \
         it issued for that host, or correct the list"
    )]
    OtherHost = 8,
    #[error(
        "the calling member runs in another process already: stop one of the two, or give each its own number"
    )]
    OtherProcess = 9,
}

impl Verdict {
    fn from_byte(byte: u8) -> Option<Verdict> {
        use Verdict::*;
        let all = [
            Welcome,
            WillCall,
            OtherVersion,
            OtherCluster,
            OtherRecipient,
            UnknownMember,
            SameNumber,
            TlsNeeded,
            OtherHost,
            OtherProcess,
        ];
        all.into_iter().find(|&verdict| verdict as u8 == byte)
    }
}

/// Version of what members say to each other; both have to have the same.
pub const VERSION: u16 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) from: MemberNumber,
    pub(super) to: MemberNumber,
    pub(super) cluster: u64,
    pub(super) nonce: u64,
    pub(super) process: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) from: MemberNumber,
    pub(super) verdict: Verdict,
    pub(super) cluster: u64,
    pub(super) nonce: u64,
    pub(super) process: u64,
    /// Address that the other process of the calling member calls from. In its place stands the speaker's number, if that needs room: with an
    /// address it is 0 then, and its caller knows whom it has called.
    pub(super) first_at: Option<SocketAddr>,
}

/// Errors of bytes that are not a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GreetingError {
    #[error("a ZooKeeper member: it cannot be in one ensemble with this one")]
    ZooKeeper,
    #[error("it speaks TLS, which this member does not: turn TLS on at both members, or at none")]
    Tls,
    #[error("not a member: it began with \"{}\"", .0.escape_ascii())]
    Stranger([u8; MAGIC_BYTES]),
    #[error("it speaks version {0}, this member {VERSION}: run the same release on both")]
    OtherVersion(u16),
    #[error("its greeting is damaged")]
    Damaged,
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; GREETING_BYTES] {
        let Hello { from, to, cluster, nonce, process } = *self;
        let recipient = narrow_member_number(to);
        Fields { from, byte: recipient, to, cluster, nonce, process, address: None }
            .encode(GreetingKind::Hello)
    }

    pub(super) fn decode(bytes: &[u8; GREETING_BYTES]) -> Result<Hello, GreetingError> {
        let Fields { from, byte, to, cluster, nonce, process, .. } =
            Fields::decode(GreetingKind::Hello, bytes)?;
        let to = if byte == 0 { to } else { byte.into() };
        Ok(Hello { from, to, cluster, nonce, process })
    }
}

impl Answer {
    pub(super) fn encode(&self) -> [u8; GREETING_BYTES] {
        let Answer { from, verdict, cluster, nonce, process, first_at } = *self;
        let fields = Fields { from, byte: verdict as u8, to: 0, cluster, nonce, process, address: first_at };
        fields.encode(GreetingKind::Answer)
    }

    pub(super) fn decode(bytes: &[u8; GREETING_BYTES]) -> Result<Answer, GreetingError> {
        let Fields { from, byte, cluster, nonce, process, address, .. } =
            Fields::decode(GreetingKind::Answer, bytes)?;
        let verdict = Verdict::from_byte(byte).ok_or(GreetingError::Damaged)?;
        Ok(Answer { from, verdict, cluster, nonce, process, first_at: address })
    }
}

/// True if two cluster ids can be the same cluster's.
pub(super) fn same_cluster(one: u64, other: u64) -> bool {
    one == 0 || other == 0 || one == other
}

/// Judges a hello as the member `own`; `known` tells if the caller is among its peers.
pub(super) fn judge(hello: &Hello, own: MemberNumber, cluster: u64, known: bool) -> Verdict {
    if !same_cluster(hello.cluster, cluster) {
        Verdict::OtherCluster
    } else if hello.to != own {
        Verdict::OtherRecipient
    } else if hello.from == own {
        Verdict::SameNumber
    } else if !known {
        Verdict::UnknownMember
    } else if hello.from < own {
        Verdict::WillCall
    } else {
        Verdict::Welcome
    }
}

/// True if the first bytes can begin a greeting.
pub(super) fn check_magic(kind: GreetingKind, magic: [u8; MAGIC_BYTES]) -> Result<(), GreetingError> {
    if magic == kind.magic() {
        Ok(())
    } else if is_zookeeper(magic) {
        Err(GreetingError::ZooKeeper)
    } else if magic.starts_with(&TLS_HANDSHAKE) {
        Err(GreetingError::Tls)
    } else {
        Err(GreetingError::Stranger(magic))
    }
}

/// The first frames of a connection, from the dialling side and from the accepting one.
pub(super) fn first_places(
    hello: &[u8; GREETING_BYTES],
    answer: &[u8; GREETING_BYTES],
) -> (FramePosition, FramePosition) {
    let both = crc32c_append(crc32c(hello), answer);
    (FramePosition::first(crc32c_append(both, b"from the dialling side")), FramePosition::first(both))
}

/// A learner begins with its packet's type, an elector with its protocol's version.
fn is_zookeeper(magic: [u8; MAGIC_BYTES]) -> bool {
    const FOLLOWER_INFO: [u8; 4] = [0, 0, 0, 11];
    const OBSERVER_INFO: [u8; 4] = [0, 0, 0, 16];
    const ELECTION_VERSIONS: [i64; 2] = [-65536, -65535];
    magic.starts_with(&FOLLOWER_INFO)
        || magic.starts_with(&OBSERVER_INFO)
        || ELECTION_VERSIONS.contains(&i64::from_be_bytes(magic))
}

/// Fields of a hello and of an answer.
struct Fields {
    from: MemberNumber,
    /// The second of the two bytes.
    byte: u8,
    /// The number that counts if the byte is 0.
    to: MemberNumber,
    cluster: u64,
    nonce: u64,
    process: u64,
    address: Option<SocketAddr>,
}

impl Fields {
    fn encode(&self, kind: GreetingKind) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[0..8].copy_from_slice(&kind.magic());
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        (bytes[10], bytes[11]) = (narrow_member_number(self.from), self.byte);
        for (at, number) in [(12, self.cluster), (20, self.nonce), (28, self.process)] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        if let Some(address) = self.address {
            let ip = match address {
                SocketAddr::V4(address) => address.ip().to_ipv6_mapped(),
                SocketAddr::V6(address) => *address.ip(),
            };
            bytes[36..52].copy_from_slice(&ip.octets());
            bytes[52..54].copy_from_slice(&address.port().to_le_bytes());
        } else {
            for (at, number) in [(36, self.from), (40, self.to)] {
                let follows = narrow_member_number(number) == 0;
                bytes[at..at + 4].copy_from_slice(&if follows { number } else { 0 }.to_le_bytes());
            }
        }
        let crc = crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(kind: GreetingKind, bytes: &[u8; GREETING_BYTES]) -> Result<Fields, GreetingError> {
        check_magic(kind, bytes[0..8].try_into().expect("eight bytes"))?;
        check_version(bytes[8..VERSION_END].try_into().expect("two bytes"))?;
        if bytes[CRC_AT..] != crc32c(&bytes[..CRC_AT]).to_le_bytes() {
            return Err(GreetingError::Damaged);
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let ip = Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[36..52]).expect("sixteen bytes"));
        let port = u16::from_le_bytes([bytes[52], bytes[53]]);
        let address = (port != 0).then(|| SocketAddr::new(ip.to_canonical(), port));
        let wide = |at: usize| match address {
            None => MemberNumber::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")),
            Some(_) => 0,
        };
        let from = if bytes[10] == 0 { wide(36) } else { bytes[10].into() };
        Ok(Fields {
            from,
            byte: bytes[11],
            to: wide(40),
            cluster: number(12),
            nonce: number(20),
            process: number(28),
            address,
        })
    }
}

/// Accepts a greeting of this member's version, which is as long as its own.
pub(super) fn check_version(version: [u8; 2]) -> Result<(), GreetingError> {
    match u16::from_le_bytes(version) {
        VERSION => Ok(()),
        other => Err(GreetingError::OtherVersion(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Hello = Hello { from: 3, to: 2, cluster: 77, nonce: 0x0123_4567_89AB_CDEF, process: 11 };

    #[test]
    fn greetings_come_out_as_they_went_in() {
        for (from, to) in
            [(3, 2), (0, 1), (1, 0), (257, 1), (1, 257), (0, 256), (1001, 233), (i32::MAX as u32, 1)]
        {
            let hello = Hello { from, to, ..HELLO };
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
            let answer =
                Answer { from, verdict: Verdict::Welcome, cluster: 0, nonce: 5, process: 12, first_at: None };
            assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }
        for byte in 0..=255 {
            let Some(verdict) = Verdict::from_byte(byte) else { continue };
            for first_at in [None, Some("10.0.0.3:2888"), Some("[fd00::3]:2888")] {
                let first_at = first_at.map(|address| address.parse().unwrap());
                let answer = Answer { from: 2, verdict, cluster: 0, nonce: 5, process: 12, first_at };
                assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
            }
        }
    }

    #[test]
    fn a_hello_is_not_an_answer() {
        assert!(matches!(Answer::decode(&HELLO.encode()), Err(GreetingError::Stranger(_))));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        for bit in 0..GREETING_BYTES * 8 {
            let mut bytes = HELLO.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Hello::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn other_protocols_are_told_apart() {
        let check = |magic: [u8; 8], expected| assert_eq!(check_magic(GreetingKind::Hello, magic), expected);
        check(*b"PADhello", Ok(()));
        check((-65536_i64).to_be_bytes(), Err(GreetingError::ZooKeeper));
        check([0, 0, 0, 11, 0, 0, 0, 0], Err(GreetingError::ZooKeeper));
        check([22, 3, 1, 2, 0, 1, 0, 1], Err(GreetingError::Tls));
        check(*b"GET / HT", Err(GreetingError::Stranger(*b"GET / HT")));
    }

    #[test]
    fn verdicts() {
        let check = |hello: Hello, own, cluster, known, expected| {
            assert_eq!(judge(&hello, own, cluster, known), expected, "{hello:?}");
        };
        check(HELLO, 2, 77, true, Verdict::Welcome);
        check(HELLO, 2, 0, true, Verdict::Welcome);
        check(Hello { cluster: 0, ..HELLO }, 2, 77, true, Verdict::Welcome);
        check(HELLO, 2, 78, true, Verdict::OtherCluster);
        check(HELLO, 1, 77, true, Verdict::OtherRecipient);
        check(HELLO, 2, 77, false, Verdict::UnknownMember);
        check(Hello { from: 2, ..HELLO }, 2, 77, false, Verdict::SameNumber);
        check(Hello { from: 1, ..HELLO }, 2, 77, true, Verdict::WillCall);
    }
}
