//! Sections and symbols of a compiled file: libbpf's programs are described by the sections that they are in.

/// A 64-bit little-endian ELF file, the format of native compilers here.
pub(crate) struct Elf<'a> {
    bytes: &'a [u8],
    sections: Vec<Section<'a>>,
}

/// One section.
#[derive(Clone, Copy)]
struct Section<'a> {
    name: &'a str,
    kind: u32,
    /// Whether the process may write to it.
    writable: bool,
    offset: usize,
    size: usize,
    link: usize,
}

/// A symbol in a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub name: String,
    /// The section's name.
    pub section: String,
    /// Address relative to the object's base.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

const SYMTAB: u32 = 2;
const SYMBOL_BYTES: usize = 24;
const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const THREAD_LOCAL: u8 = 6;
const INDIRECT_FUNCTION: u8 = 10;
const WRITE: usize = 1;
/// Arrays of functions that are called when an object is opened or closed.
const CALLED: [u32; 3] = [14, 15, 16];
/// Functions that are called then, by their names.
const CALLED_NAMES: [&str; 2] = ["_init", "_fini"];
/// Writable sections that are the linker's or the loader's: relocated constants, and what libbpf reads.
const FIXED: [&str; 11] = [
    ".data.rel.ro",
    ".dynamic",
    ".got",
    ".got.plt",
    ".maps",
    ".relro_padding",
    ".struct_ops",
    ".tm_clone_table",
    "cc_hooks",
    "license",
    "version",
];
/// The socket of the running hook: of `src/foreign/kfuncs.c`, set before each.
const OURS: &str = "cc_current";

impl<'a> Elf<'a> {
    /// `None` if the bytes are not such a file.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Elf<'a>> {
        if bytes.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let (table, entry, count) = (word(bytes, 40)?, half(bytes, 58)?, half(bytes, 60)?);
        let header = |i: usize| bytes.get(table.checked_add(i * entry)?..);
        let names = section(header(half(bytes, 62)?)?, &[])?;
        let names = bytes.get(names.offset..names.offset.checked_add(names.size)?)?;
        let sections = (0..count).map(|i| section(header(i)?, names)).collect::<Option<Vec<_>>>()?;
        Some(Elf { bytes, sections })
    }

    /// The bytes of the section of that name.
    pub(crate) fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.content(self.sections.iter().find(|section| section.name == name)?)
    }

    /// All symbols of the symbol table that are data in a section.
    pub(crate) fn objects(&self) -> Vec<Symbol> {
        self.symbols(|kind| kind == OBJECT)
    }

    /// The names of variables that keep what is written to them from one call to the next: those of writable sections, or such a
    /// section if none of its variables has a name.
    pub(crate) fn variables(&self) -> Vec<String> {
        let is_fixed = |name: &str| {
            FIXED
                .iter()
                .any(|fixed| name == *fixed || name.strip_prefix(fixed).is_some_and(|rest| rest.starts_with('.')))
        };
        let found: Vec<Symbol> = self
            .symbols(|kind| kind == OBJECT || kind == THREAD_LOCAL)
            .into_iter()
            .filter(|symbol| symbol.size > 0)
            .collect();
        let mut names = Vec::new();
        for section in self.sections.iter().filter(|section| section.writable && section.size > 0) {
            if is_fixed(section.name) || CALLED.contains(&section.kind) {
                continue;
            }
            let prior = names.len();
            names
                .extend(found.iter().filter(|symbol| symbol.section == section.name).map(|symbol| symbol.name.clone()));
            if names.len() == prior {
                names.push(section.name.to_string());
            }
        }
        names.retain(|name| name != OURS);
        names.sort_unstable();
        names
    }

    /// The segments that the object may write once it is open: address relative to its base, and bytes.
    pub(crate) fn writable_segments(&self) -> Vec<(u64, u64)> {
        const LOAD: u32 = 1;
        const WRITABLE: u32 = 2;
        let table = word(self.bytes, 32).zip(half(self.bytes, 54)).zip(half(self.bytes, 56));
        let Some(((table, entry), count)) = table else { return Vec::new() };
        let header = |i: usize| {
            let header = self.bytes.get(table.checked_add(i * entry)?..)?;
            let written = long(header, 0)? == LOAD && long(header, 4)? & WRITABLE != 0;
            written.then_some((word(header, 16)? as u64, word(header, 40)? as u64))
        };
        (0..count).filter_map(header).collect()
    }

    /// The names of what is used and not defined.
    pub(crate) fn undefined(&self) -> impl Iterator<Item = String> {
        let found =
            self.symbols(|_| true).into_iter().filter(|symbol| symbol.section.is_empty() && symbol.address == 0);
        let unversioned = |symbol: Symbol| symbol.name.split('@').next().unwrap_or_default().to_string();
        found.map(unversioned).filter(|name| !name.is_empty())
    }

    /// Whether code would run when the object is opened or closed.
    pub(crate) fn has_constructors(&self) -> bool {
        let arrays = self.sections.iter().any(|section| CALLED.contains(&section.kind) && section.size > 0);
        let functions = self.symbols(|kind| kind == FUNCTION || kind == INDIRECT_FUNCTION);
        arrays
            || functions.iter().any(|symbol| CALLED_NAMES.contains(&symbol.name.as_str()))
            || !self.symbols(|kind| kind == INDIRECT_FUNCTION).is_empty()
    }

    fn symbols(&self, wanted: impl Fn(u8) -> bool) -> Vec<Symbol> {
        let Some(table) = self.sections.iter().find(|section| section.kind == SYMTAB) else { return Vec::new() };
        let names = self.sections.get(table.link).and_then(|names| self.content(names)).unwrap_or_default();
        let entries = self.content(table).unwrap_or_default().chunks_exact(SYMBOL_BYTES);
        entries.filter(|entry| wanted(entry[4] & 15)).filter_map(|entry| self.symbol(entry, names)).collect()
    }

    fn symbol(&self, entry: &[u8], names: &[u8]) -> Option<Symbol> {
        let section = self.sections.get(half(entry, 6)?)?;
        Some(Symbol {
            name: string(names, long(entry, 0)? as usize)?.to_string(),
            section: section.name.to_string(),
            address: word(entry, 8)? as u64,
            size: word(entry, 16)? as u64,
        })
    }

    fn content(&self, section: &Section<'_>) -> Option<&'a [u8]> {
        self.bytes.get(section.offset..section.offset.checked_add(section.size)?)
    }
}

fn section<'a>(header: &[u8], names: &'a [u8]) -> Option<Section<'a>> {
    Some(Section {
        name: string(names, long(header, 0)? as usize).unwrap_or(""),
        kind: long(header, 4)?,
        writable: word(header, 8)? & WRITE != 0,
        offset: word(header, 24)?,
        size: word(header, 32)?,
        link: long(header, 40)? as usize,
    })
}

fn string(names: &[u8], at: usize) -> Option<&str> {
    let text = names.get(at..)?.split(|&byte| byte == 0).next()?;
    std::str::from_utf8(text).ok()
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?).into())
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_a_symbol_table_and_sections() {
        let bytes = std::fs::read(std::env::current_exe().expect("a test is a file")).expect("readable");
        let elf = Elf::parse(&bytes).expect("an ELF file");
        assert!(elf.section(".text").is_some_and(|text| !text.is_empty()));
        assert!(elf.section(".no-such-section").is_none());
        let layout = elf.objects().into_iter().find(|symbol| symbol.name == "cc_layout").expect("a table of layout.c");
        assert!(layout.section.starts_with(".rodata") && layout.size == 74 * 4, "{layout:?}");
    }

    #[test]
    fn a_truncated_file_is_refused() {
        let bytes = std::fs::read(std::env::current_exe().expect("a test is a file")).expect("readable");
        for length in [0, 5, 6, 40, 63, 64, 1000] {
            assert!(Elf::parse(&bytes[..length]).is_none(), "{length} bytes");
        }
        assert!(Elf::parse(b"\x7fELF\x01\x01").is_none());
    }
}
