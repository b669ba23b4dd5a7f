//! `--chmod`: permissions that are changed on the way, by whichever end was asked to.
//!
//! A sender changes what it lists, a receiver what it was sent; the disk is not looked at.
//! Wire: protocol/doc/24-environment-and-exit.md#8---chmod-grammar

use suisei_protocol::flist::{FileKind, Mode};

/// Changes of permissions, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chmod {
    rules: Vec<Rule>,
}

/// One item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    /// `D` or `F`: what it is for; nothing: both.
    only: Option<Only>,
    change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only {
    Directories,
    Others,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// All permission bits.
    Octal(u32),
    /// Some bits of some classes.
    Symbolic { who: Who, operation: Operation, what: What },
}

/// `u`, `g`, `o` and `a`: the rwx bits of the classes; nothing named is all, less the umask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Who {
    named: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Remove,
    Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Letters {
        /// `r` 4, `w` 2, `x` 1.
        rwx: u32,
        /// `X`: x for directories, and for what somebody could execute before any change.
        x_where_due: bool,
        /// `s`.
        set_id: bool,
        /// `t`.
        sticky: bool,
    },
    /// The bits that a class has: how far they are shifted.
    CopyOf(u32),
}

const ALL: u32 = 0o777;
const USER: u32 = 0o700;
const GROUP: u32 = 0o070;
const OTHER: u32 = 0o007;

/// A text that says no change of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid change of permissions")]
pub struct InvalidChmod;

impl Chmod {
    /// Adds the changes that a comma list says, behind those that are there.
    pub fn add(&mut self, text: &[u8]) -> Result<(), InvalidChmod> {
        let rules: Result<Vec<Rule>, InvalidChmod> = text.split(|&b| b == b',').map(parse).collect();
        self.rules.extend(rules?);
        Ok(())
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the changed mode. Symlinks, and names without an item, keep theirs.
    pub fn apply(&self, mode: Mode, umask: u32) -> Mode {
        let kind = mode.kind();
        if matches!(kind, FileKind::Symlink | FileKind::Missing) {
            return mode;
        }
        let is_dir = kind == FileKind::Directory;
        let applies = |rule: &&Rule| match rule.only {
            None => true,
            Some(Only::Directories) => is_dir,
            Some(Only::Others) => !is_dir,
        };
        let x_is_due = is_dir || mode.0 & 0o111 != 0;
        let permissions = self
            .rules
            .iter()
            .filter(applies)
            .fold(mode.permissions(), |bits, rule| rule.change.apply(bits, x_is_due, umask));
        Mode(mode.0 & !0o7777 | permissions)
    }
}

impl Change {
    /// `x_is_due`: what `X` stands for.
    fn apply(self, bits: u32, x_is_due: bool, umask: u32) -> u32 {
        let (who, operation, what) = match self {
            Change::Octal(bits) => return bits,
            Change::Symbolic { who, operation, what } => (who, operation, what),
        };
        let named = what.bits(who, bits, x_is_due, umask);
        match operation {
            Operation::Add => bits | named,
            Operation::Remove => bits & !named,
            Operation::Set => bits & !what.replaced(who) | named,
        }
    }
}

impl Who {
    /// The rwx bits that are meant.
    fn classes(self) -> u32 {
        if self.named == 0 {
            ALL
        } else {
            self.named
        }
    }

    fn has(self, class: u32) -> bool {
        self.named & class != 0
    }
}

impl What {
    /// The bits that are added, removed or set.
    fn bits(self, who: Who, now: u32, x_is_due: bool, umask: u32) -> u32 {
        let spread = |rwx: u32| {
            let masked = if who.named == 0 { !umask } else { ALL };
            (rwx * 0o111) & who.classes() & masked
        };
        match self {
            What::CopyOf(shift) => spread(now >> shift & 7),
            What::Letters { rwx, x_where_due, set_id, sticky } => {
                let mut bits = spread(rwx | u32::from(x_where_due && x_is_due));
                if set_id {
                    bits |= if who.has(USER) || !who.has(GROUP) { 0o4000 } else { 0 };
                    bits |= if who.has(GROUP) { 0o2000 } else { 0 };
                }
                bits | if sticky { 0o1000 } else { 0 }
            }
        }
    }

    /// The bits that `=` takes away first. Plain letters leave setuid, setgid and sticky alone.
    fn replaced(self, who: Who) -> u32 {
        let special = |class, bit| if who.has(class) { bit } else { 0 };
        let ids = special(USER, 0o4000) | special(GROUP, 0o2000);
        let special = match self {
            What::CopyOf(_) if who.named == 0 => 0o7000,
            What::CopyOf(_) => ids | special(OTHER, 0o1000),
            What::Letters { set_id, sticky, .. } if set_id || sticky => ids,
            What::Letters { .. } => 0,
        };
        who.classes() | special
    }
}

fn parse(item: &[u8]) -> Result<Rule, InvalidChmod> {
    let mut only = None;
    let mut named = 0;
    let mut at = 0;
    while let Some(&letter) = item.get(at) {
        named |= match letter {
            b'u' => USER,
            b'g' => GROUP,
            b'o' => OTHER,
            b'a' => ALL,
            b'D' | b'F' => {
                let kind = if letter == b'D' { Only::Directories } else { Only::Others };
                if only.replace(kind).is_some_and(|earlier| earlier != kind) {
                    return Err(InvalidChmod);
                }
                0
            }
            _ => break,
        };
        at += 1;
    }
    let operation = match item.get(at) {
        Some(b'+') => Operation::Add,
        Some(b'-') => Operation::Remove,
        Some(b'=') => Operation::Set,
        Some(_) if named == 0 => return Ok(Rule { only, change: Change::Octal(octal(&item[at..])?) }),
        _ => return Err(InvalidChmod),
    };
    let what = what(&item[at + 1..])?;
    Ok(Rule { only, change: Change::Symbolic { who: Who { named }, operation, what } })
}

fn octal(digits: &[u8]) -> Result<u32, InvalidChmod> {
    digits.iter().try_fold(0, |value: u32, digit| match digit {
        b'0'..=b'7' if value <= 0o777 => Ok(value * 8 + u32::from(digit - b'0')),
        _ => Err(InvalidChmod),
    })
}

fn what(letters: &[u8]) -> Result<What, InvalidChmod> {
    match letters {
        b"u" => return Ok(What::CopyOf(6)),
        b"g" => return Ok(What::CopyOf(3)),
        b"o" => return Ok(What::CopyOf(0)),
        _ => {}
    }
    let (mut rwx, mut x_where_due, mut set_id, mut sticky) = (0, false, false, false);
    for letter in letters {
        match letter {
            b'r' => rwx |= 4,
            b'w' => rwx |= 2,
            b'x' => rwx |= 1,
            b'X' => x_where_due = true,
            b's' => set_id = true,
            b't' => sticky = true,
            _ => return Err(InvalidChmod),
        }
    }
    Ok(What::Letters { rwx, x_where_due, set_id, sticky })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, permissions: u32, is_dir: bool) -> u32 {
        let mut chmod = Chmod::default();
        chmod.add(text.as_bytes()).unwrap();
        let kind = if is_dir { 0o040_000 } else { 0o100_000 };
        chmod.apply(Mode(kind | permissions), 0o022).permissions()
    }

    /// Captured of stock, umask 022: what becomes of files of these modes.
    #[test]
    fn captured_changes_of_files() {
        let before = [0o0000, 0o0644, 0o0755, 0o0600, 0o0777, 0o4711, 0o2755, 0o1777, 0o0124, 0o7421];
        let table = "
            u=g 0 444 555 0 777 111 2555 1777 224 3221
            g=u 0 664 775 660 777 4771 775 1777 114 5441
            o=g 0 644 755 600 777 4711 2755 777 122 6422
            =g 0 444 555 0 755 111 555 755 200 200
            ug=o 0 444 555 0 777 111 555 1777 444 1111
            u+g 0 644 755 600 777 4711 2755 1777 324 7621
            u-g 0 244 255 600 77 4611 2255 1077 124 7421
            +u 0 644 755 644 777 4755 2755 1777 135 7465
            +w 200 644 755 600 777 4711 2755 1777 324 7621
            -w 0 444 555 400 577 4511 2555 1577 124 7421
            =r 444 444 444 444 444 4444 2444 1444 444 7444
            =rw 644 644 644 644 644 4644 2644 1644 644 7644
            a+s 6000 6644 6755 6600 6777 6711 6755 7777 6124 7421
            o+s 4000 4644 4755 4600 4777 4711 6755 5777 4124 7421
            +s 4000 4644 4755 4600 4777 4711 6755 5777 4124 7421
            go+s 2000 2644 2755 2600 2777 6711 2755 3777 2124 7421
            u=s 4000 4044 4055 4000 4077 4011 6055 5077 4024 7021
            u=t 1000 1044 1055 1000 1077 1011 3055 1077 1024 3021
            g=t 1000 1604 1705 1600 1707 5701 1705 1707 1104 5401
            =t 1000 1000 1000 1000 1000 5000 3000 1000 1000 7000
            a=s 6000 6000 6000 6000 6000 6000 6000 7000 6000 7000
            o-s 0 644 755 600 777 711 2755 1777 124 3421
            u-rwxst 0 44 55 0 77 11 2055 77 24 2021
            a+X 0 644 755 600 777 4711 2755 1777 135 7531
            u=X 0 44 155 0 177 4111 2155 1177 124 7121
            = 0 0 0 0 0 4000 2000 1000 0 7000
            D-rwx,Fu+x 100 744 755 700 777 4711 2755 1777 124 7521
            0000755 755 755 755 755 755 755 755 755 755 755
            D755,F644 644 644 644 644 644 644 644 644 644 644
        ";
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (text, after) = line.split_once(' ').unwrap();
            let after: Vec<u32> =
                after.split(' ').map(|bits| u32::from_str_radix(bits, 8).unwrap()).collect();
            let got: Vec<u32> = before.iter().map(|&bits| changed(text, bits, false)).collect();
            assert_eq!(got, after, "{text}: {got:?}");
        }
    }

    #[test]
    fn directories_get_x_by_its_capital_and_what_has_their_prefix() {
        assert_eq!(changed("a+X", 0o600, true), 0o711);
        assert_eq!(changed("D=rwX", 0o2755, true), 0o2755);
        assert_eq!(changed("D-rwx,Fu+x", 0o777, true), 0o022);
        assert_eq!(changed("a-x,a+X", 0o755, false), 0o755);
        assert_eq!(changed("Dg+s,Fg-s", 0o755, true), 0o2755);
        assert_eq!(changed("F644", 0o4711, true), 0o4711);
        let mut chmod = Chmod::default();
        chmod.add(b"a=").unwrap();
        assert_eq!(chmod.apply(Mode(0o120_777), 0), Mode(0o120_777));
    }

    #[test]
    fn captured_refusals_change_nothing() {
        let mut chmod = Chmod::default();
        chmod.add(b"u+x").unwrap();
        let before = chmod.clone();
        let refused = [
            "u+q", "", "8", "77777", "12345", "u", "DFu+x", "u+x,,", ",u+x", "u+x,", "u+x,foo", "u+x-w", "D",
            "u7", "F=7", "0x", "u=gw", "u=wg", "u=a", "D u+x", "u +x", "u+=x", "u==x",
        ];
        for text in refused {
            assert_eq!(chmod.add(text.as_bytes()), Err(InvalidChmod), "{text}");
        }
        assert_eq!(chmod, before);
        for text in ["u+r", "DD+x", "uDg+x", "a-", "ugoa+r", "u=rr", "007777"] {
            assert!(chmod.add(text.as_bytes()).is_ok(), "{text}");
        }
    }
}
