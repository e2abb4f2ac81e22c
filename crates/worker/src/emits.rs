//! Counts the blocks of `mcp.emit`.

use callgate_sandbox::is_base64;

/// Counts of emitted blocks and their limits.
#[derive(Debug, Default)]
pub(super) struct Emits {
    max: u64,
    max_bytes: u64,
    count: u64,
    bytes: u64,
}

impl Emits {
    /// `max_bytes` is for all blocks together.
    pub(super) fn new(max: u64, max_bytes: u64) -> Self {
        Self {
            max,
            max_bytes,
            ..Self::default()
        }
    }

    /// Counts a block, unless its `data` is not base64 or a limit is reached.
    pub(super) fn take(&mut self, block: &str, data: &str) -> Result<(), String> {
        if !is_base64(data) {
            return Err("the data is not base64 (RFC 4648, with padding)".to_owned());
        }
        if self.count >= self.max {
            return Err(format!(
                "the script has emitted {} blocks, which is the limit",
                self.max
            ));
        }
        let bytes = self.bytes.saturating_add(block.len() as u64);
        if bytes > self.max_bytes {
            return Err(format!(
                "with this block of {} bytes the script would have emitted {bytes}, over the limit \
                 of {} bytes",
                block.len(),
                self.max_bytes
            ));
        }
        self.count += 1;
        self.bytes = bytes;
        Ok(())
    }
}
