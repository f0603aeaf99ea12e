//! The table of operations in an object file, as compiled: the algorithm's name, its flags, its hooks.

use crate::error::Error;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};

/// Bytes of the member `name`, its closing zero included (Linux's TCP_CA_NAME_MAX).
const NAME_BYTES: usize = 16;

/// Linux's TCP_CONG_NON_RESTRICTED: every user may choose the algorithm, not root alone.
const NON_RESTRICTED: u32 = 1;

/// Offsets of the members in an object's own `struct tcp_congestion_ops`. The kernel's may differ; libbpf
/// matches the two by name.
pub(crate) struct Layout {
    /// Name and offset in bytes.
    members: Vec<(String, usize)>,
}

impl Layout {
    /// Of the object file `bytes`; `None` if it does not describe such a struct.
    pub(crate) fn of(bytes: &[u8]) -> Option<Layout> {
        let btf = Btf::from_raw("algorithm", bytes).ok()??;
        let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
        let members = ops.iter().filter_map(|member| match member.attr {
            MemberAttr::Normal { offset } => Some((member.name?.to_string_lossy().into_owned(), offset as usize / 8)),
            MemberAttr::BitField { .. } => None,
        });
        Some(Layout { members: members.collect() })
    }

    /// `length` bytes of the member `name`.
    fn range(&self, name: &str, length: usize) -> Option<std::ops::Range<usize>> {
        let (_, offset) = self.members.iter().find(|(member, _)| member == name)?;
        Some(*offset..offset + length)
    }

    /// Whether the table has a function for this hook.
    pub(crate) fn has(&self, table: &[u8], hook: &str) -> bool {
        let pointer = self.range(hook, size_of::<usize>()).and_then(|range| table.get(range));
        pointer.is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0))
    }

    /// The name that the kernel will know the algorithm by.
    ///
    /// # Errors
    /// It is empty, longer than 15 characters, or holds others than letters, digits, `_` and `-`. `label` and `symbol`,
    /// the C variable's name, are for the message.
    pub(crate) fn name(&self, table: &[u8], label: &str, symbol: &str) -> Result<String, Error> {
        let bytes = self.range("name", NAME_BYTES).and_then(|range| table.get(range)).unwrap_or_default();
        let Some(end) = bytes.iter().position(|&byte| byte == 0) else {
            let begin = String::from_utf8_lossy(bytes).into_owned();
            let label = label.to_string();
            // CC_OPS calls the variable as the algorithm, in full.
            return Err(if symbol.starts_with(&begin) {
                Error::NameTooLong { label, name: symbol.to_string() }
            } else {
                Error::TableNameTooLong { label, begin }
            });
        };
        let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let usual = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(usual) {
            return Err(Error::Name { label: label.to_string(), name });
        }
        Ok(name)
    }

    /// Allows every user to choose the algorithm. Without it a namespace's sysctl refuses the name for all but root.
    pub(crate) fn open_to_all(&self, table: &mut [u8]) {
        let flags = self.range("flags", size_of::<u32>()).and_then(|range| table.get_mut(range));
        if let Some(flags) = flags.and_then(|bytes| <&mut [u8; 4]>::try_from(bytes).ok()) {
            *flags = (u32::from_ne_bytes(*flags) | NON_RESTRICTED).to_ne_bytes();
        }
    }

    /// What the table lacks of what Linux requires of every algorithm, as text.
    pub(crate) fn lacks(&self, table: &[u8]) -> Vec<&'static str> {
        let has = |hook: &str| self.has(table, hook);
        let required = [
            (has("ssthresh"), "ssthresh"),
            (has("undo_cwnd"), "undo_cwnd"),
            (has("cong_avoid") || has("cong_control"), "cong_avoid or cong_control"),
        ];
        required.into_iter().filter(|(there, _)| !there).map(|(_, hook)| hook).collect()
    }
}
