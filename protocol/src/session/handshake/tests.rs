use super::*;

fn offer(side: Side) -> Offer {
    Offer {
        side,
        direction: Direction::Sending,
        version: Version::NEWEST,
        agreed: None,
        capabilities: Capabilities::ours(IncrementalRecursion::Allowed),
        recursion: IncrementalRecursion::Allowed,
        sums: None,
        compress: CompressWish::Off,
        compress_level: None,
        seed: 0x6B1D_6A2E,
        checksum_list: None,
        compress_list: None,
        charset: None,
        recorded: false,
        layout: Layout::default(),
        needs: None,
    }
}

fn version(n: u32) -> Version {
    Version::new(n).unwrap()
}

/// Feeds `input` whole, and then again byte by byte to a second handshake, which must end alike.
fn run(offer: Offer, input: &[u8]) -> (Vec<u8>, Result<Progress, Error>) {
    let mut whole = Handshake::new(offer.clone()).unwrap();
    let result = whole.feed(input);
    let output = whole.output();

    let mut bytewise = Handshake::new(offer).unwrap();
    let (mut taken, mut last) = (0, Ok(Progress::NeedMore { consumed: 0 }));
    for end in 0..=input.len() {
        last = bytewise.feed(&input[taken..end]);
        match &mut last {
            Ok(Progress::NeedMore { consumed }) => taken += *consumed,
            Ok(Progress::Done { consumed, .. }) => {
                *consumed += taken;
                break;
            }
            Err(_) => break,
        }
    }
    if let Ok(Progress::NeedMore { consumed }) = &mut last {
        *consumed = taken;
    }
    assert_eq!(last, result);
    assert_eq!(bytewise.output(), output);
    (output, result)
}

fn done(offer: Offer, input: &[u8]) -> (Vec<u8>, usize, Session) {
    let (output, result) = run(offer, input);
    let Ok(Progress::Done { consumed, session }) = result else { panic!("{result:?}") };
    (output, consumed, session)
}

const SERVER_LISTS: &[u8] = b"\x23xxh128 xxh3 xxh64 md5 md4 sha1 none\x18zstd lz4 zlibx zlib none";
const CLIENT_LISTS: &[u8] = b"\x1Exxh128 xxh3 xxh64 md5 md4 sha1\x13zstd lz4 zlibx zlib";

#[test]
fn a_client_meets_the_captured_server() {
    let input = [b"\x20\0\0\0\x81\xFF", &SERVER_LISTS[..36], b"\x2E\x6A\x1D\x6B\x37\0\0\x07"].concat();
    let (output, consumed, session) = done(offer(Side::Client), &input);
    assert_eq!(output, b"\x20\0\0\0\x06xxh128", "one name, whatever rule the server follows");
    assert_eq!(consumed, input.len() - 4, "the first frame is left alone");
    assert_eq!((session.seed, session.transfer_sum), (0x6B1D_6A2E, SumKind::Xxh128));
    assert_eq!((session.compat.bits(), session.recursion), (0x1FF, Recursion::Incremental));
}

#[test]
fn a_server_meets_the_captured_client() {
    let mut server = offer(Side::Server);
    server.compress = CompressWish::Negotiate;
    server.recursion = IncrementalRecursion::Refused;
    let input = [b"\x20\0\0\0", CLIENT_LISTS, b"\x2A\0\0\x07"].concat();
    let (output, consumed, session) = done(server, &input);
    let expected = [b"\x20\0\0\0\x81\xFE", SERVER_LISTS, b"\x2E\x6A\x1D\x6B"].concat();
    assert_eq!(output, expected);
    assert_eq!(consumed, input.len() - 4);
    assert_eq!((session.compressor, session.compress_level), (Compressor::Zstd, 3));
    assert_eq!(session.recursion, Recursion::Whole);
}

#[test]
fn a_server_sends_its_lists_without_waiting_for_any() {
    let mut server = Handshake::new(offer(Side::Server)).unwrap();
    assert_eq!(server.feed(b"\x20\0\0\0"), Ok(Progress::NeedMore { consumed: 4 }));
    assert!(server.output().ends_with(&SERVER_LISTS[..36]));
}

#[test]
fn old_versions_settle_everything_with_one_int() {
    let mut client = offer(Side::Client);
    client.version = version(29);
    client.compress = CompressWish::Negotiate;
    let (output, consumed, session) = done(client, b"\x20\0\0\0\xB1\x89\x1C\x6B\x05");
    assert_eq!((output.as_slice(), consumed), (b"\x1D\0\0\0".as_slice(), 8));
    assert_eq!((session.version, session.seed), (version(29), 0x6B1C_89B1));
    assert_eq!((session.transfer_sum, session.compressor), (SumKind::Md4Seeded, Compressor::Zlib));
    let (output, _, session) = done(offer(Side::Server), b"\x1B\0\0\0");
    assert_eq!(output, b"\x20\0\0\0\x2E\x6A\x1D\x6B");
    assert_eq!(session.version, version(27));
}

#[test]
fn a_daemon_session_has_no_version_ints() {
    let mut server = offer(Side::Server);
    server.agreed = Some(version(30));
    server.capabilities = Capabilities::parse(b".f");
    let (output, consumed, session) = done(server, b"");
    assert_eq!((output.as_slice(), consumed), (b"\x0E\x2E\x6A\x1D\x6B".as_slice(), 0));
    assert_eq!(session.transfer_sum, SumKind::Md5 { seed_first: false });
    let mut client = offer(Side::Client);
    client.agreed = Some(version(31));
    let (output, consumed, session) = done(client, b"\x06\x01\0\0\0");
    assert_eq!((output.as_slice(), consumed), (b"".as_slice(), 5), "a daemon that never saw `e`: no lists");
    assert_eq!(session.compat.bits(), 0x06);
}

#[test]
fn explicit_choices_are_not_negotiated() {
    let mut server = offer(Side::Server);
    server.sums = SumChoice::parse("md5").unwrap();
    server.compress = CompressWish::Fixed(Compressor::Zlib);
    server.compress_level = Some(0);
    let (output, _, session) = done(server, b"\x20\0\0\0");
    assert_eq!(output, b"\x20\0\0\0\x81\xFF\x2E\x6A\x1D\x6B");
    assert_eq!(session.transfer_sum, SumKind::Md5 { seed_first: true });
    assert_eq!(session.compressor, Compressor::None, "level 0 of zlib means off");
}

#[test]
fn nothing_in_common_ends_with_4_at_both_ends() {
    let mut client = offer(Side::Client);
    client.checksum_list = Some("bogus".to_owned());
    let (output, result) = run(client, b"\x20\0\0\0\x81\xFF\x03md5");
    assert_eq!(output, b"\x20\0\0\0\x07INVALID");
    let error = result.unwrap_err();
    assert_eq!(error.exit_code(), 4);
    assert_eq!(
        error.to_string(),
        "Failed to negotiate a checksum choice.\nServer list: md5\nClient list: INVALID"
    );
    for list in [b"\x00".as_slice(), b"\x07INVALID", b"\x81\x00"] {
        let (_, result) = run(offer(Side::Server), &[b"\x20\0\0\0", list].concat());
        assert_eq!(result.unwrap_err().exit_code(), 4, "{list:?}");
    }
}

#[test]
fn a_server_s_environment_limits_choices_and_defaults() {
    let mut server = offer(Side::Server);
    server.checksum_list = Some("xxh3".to_owned());
    server.sums = SumChoice::parse("xxh64").unwrap();
    let error = Handshake::new(server.clone()).unwrap_err();
    assert_eq!(error.to_string(), "Your --checksum-choice value (xxh64) was refused by the server.");
    server.sums = None;
    server.capabilities = Capabilities::parse(b".iLsfxCIu");
    let (_, result) = run(server, b"\x20\0\0\0");
    assert_eq!(
        result.unwrap_err().to_string(),
        "Failed to negotiate a checksum choice.\nServer list: xxh3\nClient list: md5"
    );
}

#[test]
fn versions_out_of_range_are_shell_chatter() {
    for peer in [19, 41, 100, -1, 26] {
        let (_, result) = run(offer(Side::Client), &i32::to_le_bytes(peer));
        assert_eq!(result, Err(PeerIncompatible::Version(peer).into()));
    }
    let (_, _, session) = done(offer(Side::Server), &[b"\x28\0\0\0", CLIENT_LISTS].concat());
    assert_eq!(session.version, Version::NEWEST);
}

#[test]
fn a_server_may_not_force_segments_or_lack_creation_times() {
    let mut client = offer(Side::Client);
    client.capabilities = Capabilities::ours(IncrementalRecursion::Refused);
    let (_, result) = run(client.clone(), b"\x20\0\0\0\x01");
    assert_eq!(result.unwrap_err().exit_code(), 1);
    client.layout.crtimes = true;
    let (_, result) = run(client, b"\x20\0\0\0\x3E");
    assert_eq!(result.unwrap_err().exit_code(), 2);
}

#[test]
fn none_cannot_serve_for_list_sums() {
    let mut client = offer(Side::Client);
    client.layout.checksum = true;
    client.sums = SumChoice::parse("md5,none").unwrap();
    assert_eq!(Handshake::new(client).unwrap_err(), Misuse::NoListSum.into());
}
