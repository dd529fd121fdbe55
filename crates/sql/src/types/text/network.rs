//! Addresses of hosts and networks as text, as PostgreSQL reads and writes them.

use super::{invalid, put};
use crate::error::SqlError;
use crate::types::network::{Family, Network};

/// Reads an `inet` or, if it is to be a network, a `cidr`.
///
/// # Errors
/// 22P02 if it is none.
pub(super) fn parse(text: &str, is_cidr: bool) -> Result<Network, SqlError> {
    let found = match (text.contains(':'), is_cidr) {
        (true, _) => six(text),
        (false, true) => four_of_network(text),
        (false, false) => four(text),
    };
    let network = found.ok_or_else(|| invalid(text, if is_cidr { "cidr" } else { "inet" }))?;
    if is_cidr && !network.is_network() {
        let mut error = invalid(text, "cidr").with_detail("Value has bits set to right of mask.");
        error.message = format!("invalid cidr value: \"{text}\"");
        return Err(error);
    }
    Ok(network)
}

/// Digits at the beginning, as a number up to a greatest; and what follows.
fn number(text: &str, most: u32) -> Option<(u32, &str)> {
    let end = text.find(|one: char| !one.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let mut value = 0_u32;
    for digit in digits.bytes() {
        value = value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
        if value > most {
            return None;
        }
    }
    (!digits.is_empty()).then_some((value, rest))
}

/// The bits behind a slash, which is the end.
fn bits_of_four(text: &str) -> Option<u8> {
    match number(text, 32)? {
        (bits, "") => u8::try_from(bits).ok(),
        _ => None,
    }
}

/// An address of four bytes. With bits behind it, it may have fewer bytes.
fn four(text: &str) -> Option<Network> {
    let (octets, bits) = match text.split_once('/') {
        Some((octets, bits)) => (octets, Some(bits_of_four(bits)?)),
        None => (text, None),
    };
    // A point may follow the last one, too.
    let bytes = octets_of(octets.strip_suffix('.').unwrap_or(octets))?;
    let bits = bits.or((bytes.len() == 4).then_some(32))?;
    if usize::from(bits / 8) > bytes.len() {
        return None;
    }
    Network::new(Family::V4, bits, &bytes)
}

/// Up to four numbers with points between them.
fn octets_of(text: &str) -> Option<Vec<u8>> {
    let octet = |octet: &str| match number(octet, 255)? {
        (value, "") => u8::try_from(value).ok(),
        _ => None,
    };
    let bytes: Vec<u8> = text.split('.').map(octet).collect::<Option<_>>()?;
    (bytes.len() <= 4).then_some(bytes)
}

/// A network of four bytes: it may have fewer of them, or be in hexadecimal digits, and its bits may follow from its class.
fn four_of_network(text: &str) -> Option<Network> {
    let (octets, bits) = match text.split_once('/') {
        Some((octets, bits)) => (octets, Some(bits_of_four(bits)?)),
        None => (text, None),
    };
    let hexadecimal = octets.strip_prefix("0x").or_else(|| octets.strip_prefix("0X"));
    let bytes = match hexadecimal.filter(|digits| !digits.is_empty()) {
        Some(digits) => hexadecimal_octets(digits)?,
        None => octets_of(octets)?,
    };
    let first = *bytes.first()?;
    let bits = bits.unwrap_or_else(|| {
        let of_class = match first {
            240.. => 32,
            224.. => 8,
            192.. => 24,
            128.. => 16,
            _ => 8,
        };
        let wide = of_class.max(8 * bytes.len() as u8);
        // A class of its own has no more than its four bits.
        if wide == 8 && first == 224 { 4 } else { wide }
    });
    Network::new(Family::V4, bits, &bytes)
}

/// Two digits a byte; a single last one is the upper half.
fn hexadecimal_octets(digits: &str) -> Option<Vec<u8>> {
    let halves: Vec<u8> =
        digits.chars().map(|digit| digit.to_digit(16).map(|it| it as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        halves.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect();
    (bytes.len() <= 4).then_some(bytes)
}

/// The bits behind an address of sixteen bytes, or the part of one within it: without zeros before them.
fn plain_number(text: &str, most: u32) -> Option<u8> {
    if text.len() > 1 && text.starts_with('0') {
        return None;
    }
    match number(text, most)? {
        (value, "") => u8::try_from(value).ok(),
        _ => None,
    }
}

/// An address of sixteen bytes: groups of hexadecimal digits, of which `::` stands for as many zeros as are missing, and the last two of
/// which may be written like an address of four bytes.
fn six(text: &str) -> Option<Network> {
    let (groups, bits) = match text.split_once('/') {
        Some((groups, bits)) => (groups, Some(plain_number(bits, 128)?)),
        None => (text, None),
    };
    // A colon may follow the last group before a slash.
    let behind_colon = groups.strip_suffix(':').filter(|_| bits.is_some());
    let groups = behind_colon.filter(|left| left.ends_with(is_hexadecimal)).unwrap_or(groups);
    let holds_four = bits.is_some() || !groups.ends_with('.');
    let (before, behind) = match groups.split_once("::") {
        Some((before, behind)) => (before, Some(behind)),
        None => (groups, None),
    };
    let mut bytes = Vec::new();
    put_groups(before, holds_four && behind.is_none(), &mut bytes)?;
    if let Some(behind) = behind {
        let mut more = Vec::new();
        put_groups(behind, holds_four, &mut more)?;
        // It stands for something.
        let missing = 16_usize.checked_sub(bytes.len() + more.len()).filter(|missing| *missing > 0)?;
        bytes.resize(bytes.len() + missing, 0);
        bytes.extend(more);
    }
    if bytes.len() == 16 { Network::new(Family::V6, bits.unwrap_or(128), &bytes) } else { None }
}

fn is_hexadecimal(character: char) -> bool {
    character.is_ascii_hexdigit()
}

/// Appends the bytes of groups, of which the last one may be an address of four bytes if it `holds_four`.
fn put_groups(text: &str, holds_four: bool, bytes: &mut Vec<u8>) -> Option<()> {
    if text.is_empty() {
        return Some(());
    }
    let mut groups = text.split(':').peekable();
    while let Some(group) = groups.next() {
        if group.contains('.') && holds_four && groups.peek().is_none() {
            // What is missing between points is a zero.
            let octet = |octet: &str| if octet.is_empty() { Some(0) } else { plain_number(octet, 255) };
            let octets = group.split('.').map(octet);
            let octets: Vec<u8> = octets.collect::<Option<_>>()?;
            // Fewer than four are taken to be the first ones.
            (octets.len() <= 4 && bytes.len() <= 12).then_some(())?;
            bytes.extend(octets.iter().chain(&[0; 4]).take(4));
            continue;
        }
        if group.len() > 4 || !group.chars().all(is_hexadecimal) {
            return None;
        }
        bytes.extend(u16::from_str_radix(group, 16).ok()?.to_be_bytes());
    }
    Some(())
}

/// Which parts of an address are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    /// The address without bits.
    Host,
    /// The address, and its bits if they are not all.
    Inet,
    /// The address and its bits.
    Whole,
    /// Of the address what is not zero behind the bits, and these.
    Short,
}

/// Appends the text of an address.
pub(crate) fn format(network: &Network, shown: Shown, out: &mut Vec<u8>) {
    let bits = network.bits();
    match (shown, network.family()) {
        (Shown::Short, Family::V4) => put_short_four(network, out),
        (Shown::Short, Family::V6) => put_short_six(network, out),
        (_, Family::V4) => put_octets(network.bytes(), out),
        (_, Family::V6) => put_six(network.bytes(), out),
    }
    let has_bits = match shown {
        Shown::Host => false,
        Shown::Inet => bits != network.family().bits(),
        Shown::Whole | Shown::Short => true,
    };
    if has_bits {
        put(out, format_args!("/{bits}"));
    }
}

fn put_octets(bytes: &[u8], out: &mut Vec<u8>) {
    for (place, byte) in bytes.iter().enumerate() {
        let point = if place > 0 { "." } else { "" };
        put(out, format_args!("{point}{byte}"));
    }
}

fn words_of(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])).collect()
}

/// Groups, the longest run of zeros left out if it is of two or more, and the last two as octets where they are an address of four bytes.
fn put_six(bytes: &[u8], out: &mut Vec<u8>) {
    let words = words_of(bytes);
    let (mut start, mut length) = (0, 0);
    let mut run = 0;
    for (place, word) in words.iter().enumerate() {
        run = if *word == 0 { run + 1 } else { 0 };
        if run > length {
            (start, length) = (place + 1 - run, run);
        }
    }
    let left_out = if length >= 2 { start..start + length } else { 0..0 };
    let holds_four = left_out.start == 0
        && match left_out.len() {
            5 => words[5] == 0xFFFF,
            6 => true,
            7 => words[7] != 1,
            _ => false,
        };
    for (place, word) in words.iter().enumerate() {
        if left_out.contains(&place) {
            if place == left_out.start {
                out.push(b':');
            }
            continue;
        }
        if place > 0 {
            out.push(b':');
        }
        if place == 6 && holds_four {
            return put_octets(&bytes[12..], out);
        }
        put(out, format_args!("{word:x}"));
    }
    if !left_out.is_empty() && left_out.end == 8 {
        out.push(b':');
    }
}

/// The octets that have bits of the network.
fn put_short_four(network: &Network, out: &mut Vec<u8>) {
    match network.bits() {
        0 => out.push(b'0'),
        bits => put_octets(&network.network().bytes()[..usize::from(bits.div_ceil(8))], out),
    }
}

/// The groups that have bits of the network, two at least, with a run of zeros left out. Which one follows PostgreSQL in that a run which is
/// no longer than one before it counts on.
fn put_short_six(network: &Network, out: &mut Vec<u8>) {
    let bits = network.bits();
    if bits == 0 {
        return out.extend_from_slice(b"::");
    }
    let network = network.network();
    let bytes = network.bytes();
    let count = usize::from(bits.div_ceil(16)).max(2);
    let words = words_of(&bytes[..2 * count]);
    let (mut start, mut length) = (0, 0);
    let (mut run_start, mut run) = (0, 0);
    for (place, word) in words.iter().chain(&[1]).enumerate() {
        if *word == 0 {
            if run == 0 {
                run_start = place;
            }
            run += 1;
        } else if run > length {
            (start, length, run) = (run_start, run, 0);
        }
    }
    let left_out = start..start + length;
    let holds_four = length != count
        && start == 0
        && match length {
            5 => bytes[10..12] == [0xFF, 0xFF],
            6 => true,
            7 => bytes[14] != 0 && bytes[15] != 1,
            _ => false,
        };
    let begin = out.len();
    for (place, word) in words.iter().enumerate() {
        if left_out.contains(&place) {
            if place == start {
                out.push(b':');
            }
            if place == count - 1 {
                out.push(b':');
            }
        } else if holds_four && place > 5 {
            let [first, second] = word.to_be_bytes();
            put(out, format_args!("{}{first}", if place == 6 { ':' } else { '.' }));
            // The last octet is left out where it has no bit of the network.
            if place != 7 || bits > 120 {
                put(out, format_args!(".{second}"));
            }
        } else {
            let colon = if out.len() > begin { ":" } else { "" };
            put(out, format_args!("{colon}{word:x}"));
        }
    }
}
