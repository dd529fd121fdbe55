//! Bytes from a seed: messages of clients, right and wrong.

/// SplitMix64.
pub struct Generator(pub u64);

impl Generator {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub fn bytes(&mut self, limit: usize) -> Vec<u8> {
        (0..self.below(limit)).map(|_| self.next() as u8).collect()
    }

    /// Changes a few bytes: flips, cuts, doubles, and numbers at the edges of what they can be.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.below(4) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                2 => bytes.truncate(at),
                3 => bytes.insert(at, self.next() as u8),
                4 => {
                    let end = at + self.below(bytes.len() - at + 1);
                    let part = bytes[at..end].to_vec();
                    bytes.extend(part);
                }
                _ => {
                    let edge: &[u8] = self.pick(&[
                        b"\xff\xff\xff\xff",
                        b"\0\0\0\0",
                        b"\x7f\xff\xff\xff",
                        b"\xff\xff",
                        b"\0\x01\0\0",
                    ]);
                    let end = bytes.len().min(at + edge.len());
                    bytes[at..end].copy_from_slice(&edge[..end - at]);
                }
            }
        }
    }

    /// The length of a read.
    pub fn piece(&mut self, rest: usize) -> usize {
        let length = if self.one_in(2) { 1 + self.below(8) } else { 1 + self.below(rest) };
        length.min(rest)
    }
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

pub const BODIES: &[(u8, &[u8])] = &[
    (b'Q', b"select 1;\0"),
    (b'P', b"s\0select $1, $2\0\0\x02\0\0\0\x17\0\0\0\0"),
    (b'B', b"p\0s\0\0\x01\0\x01\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0\0\x02\0\0\0\x01"),
    (b'B', b"\0\0\0\0\0\0\0\0"),
    (b'D', b"Ss\0"),
    (b'E', b"p\0\0\0\x01\0"),
    (b'C', b"Pp\0"),
    (b'S', b""),
    (b'H', b""),
    (b'X', b""),
    (b'd', b"1\t2\n3\t4\n"),
    (b'c', b""),
    (b'f', b"why\0"),
    (b'F', b"\0\0\0\x01\0\0\0\0\0\0"),
    (b'p', b"SCRAM-SHA-256\0\0\0\0\x20n,,n=user,r=rOprNGfwEbeRWgbNEkqO"),
    (b'p', b"secret\0"),
];

pub const STARTUPS: &[&[u8]] = &[
    b"\0\0\0\x08\x04\xd2\x16\x2f",
    b"\0\0\0\x08\x04\xd2\x16\x30",
    b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\x01\x02\x03\x04",
    b"\0\0\0\x20\0\x03\0\x02user\0me\0_pq_.x\0y\0a\0\xc3\xa4\0\0",
];
