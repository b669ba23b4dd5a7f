//! The statistics block and the two lines that close a run.
//!
//! Wire: protocol/doc/22-output.md#5-stats-block---stats

use std::fmt::Write;

use suisei_engine::stats::{KindCounts, Stats};
use suisei_protocol::session::Version;

use super::human::Human;

/// Returns the block of `--stats`, its leading blank line included.
pub fn block(stats: &Stats, version: Version, human: Human) -> String {
    let mut text = String::from("\n");
    let mut line =
        |label: &str, value: String| writeln!(text, "{label}: {value}").expect("a String takes all");
    line("Number of files", counts(&stats.listed, human));
    if version.has_item_flags() {
        line("Number of created files", counts(&stats.created, human));
    }
    if version.has_delete_phase() {
        line("Number of deleted files", counts(&stats.deleted, human));
    }
    line("Number of regular files transferred", human.count(stats.transferred.value()));
    let bytes = |n: u64| format!("{} bytes", human.bytes(n));
    line("Total file size", bytes(stats.total_size.value()));
    line("Total transferred file size", bytes(stats.transferred_size.value()));
    line("Literal data", bytes(stats.literal.value()));
    line("Matched data", bytes(stats.matched.value()));
    line("File list size", human.bytes(stats.list_bytes.value()));
    if stats.list_build_ms.value() > 0 {
        let seconds = |ms: u64| format!("{} seconds", human.min(Human::Grouped).fixed(ms as f64 / 1000.0, 3));
        line("File list generation time", seconds(stats.list_build_ms.value()));
        line("File list transfer time", seconds(stats.list_transfer_ms.value()));
    }
    line("Total bytes sent", human.bytes(stats.bytes_written.value()));
    line("Total bytes received", human.bytes(stats.bytes_read.value()));
    text
}

/// Returns the two lines, the leading blank line included. `kind` ends them: ` (DRY RUN)`, ` (BATCH ONLY)` or nothing.
pub fn totals(stats: &Stats, seconds: u64, kind: &str, human: Human) -> String {
    let (sent, received) = (stats.bytes_written.value(), stats.bytes_read.value());
    let moved = (sent + received) as f64;
    let total = stats.total_size.value();
    let rate = moved / (0.5 + seconds as f64);
    let speedup = if moved > 0.0 { total as f64 / moved } else { 0.0 };
    format!(
        "\nsent {} bytes  received {} bytes  {} bytes/sec\ntotal size is {}  speedup is {}{}\n",
        human.bytes(sent),
        human.bytes(received),
        human.decimal(rate, 2),
        human.bytes(total),
        human.min(Human::Grouped).fixed(speedup, 2),
        kind
    )
}

fn counts(counts: &KindCounts, human: Human) -> String {
    let total = counts.total();
    let mut text = human.count(total);
    if total == 0 {
        return text;
    }
    let parts: Vec<String> = [
        ("reg", &counts.regular),
        ("dir", &counts.dirs),
        ("link", &counts.links),
        ("dev", &counts.devices),
        ("special", &counts.specials),
    ]
    .iter()
    .filter(|(_, counter)| counter.value() > 0)
    .map(|(name, counter)| format!("{name}: {}", human.count(counter.value())))
    .collect();
    write!(text, " ({})", parts.join(", ")).expect("a String takes all");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let stats = Stats::default();
        stats.listed.regular.add(3);
        stats.listed.dirs.add(2);
        stats.listed.specials.add(1);
        stats.total_size.set(47_791);
        stats.bytes_written.set(48_106);
        stats.bytes_read.set(90);
        stats
    }

    #[test]
    fn block_has_stocks_lines() {
        let text = block(&stats(), Version::NEWEST, Human::Grouped);
        assert!(text
            .starts_with("\nNumber of files: 6 (reg: 3, dir: 2, special: 1)\nNumber of created files: 0\n"));
        assert!(text.contains("\nTotal file size: 47,791 bytes\n"));
        assert!(text.ends_with("\nTotal bytes sent: 48,106\nTotal bytes received: 90\n"));
        assert!(!text.contains("generation time"));
        assert!(!block(&stats(), Version::OLDEST, Human::Grouped).contains("created"));
    }

    #[test]
    fn totals_have_stocks_columns() {
        assert_eq!(
            totals(&stats(), 0, "", Human::Grouped),
            "\nsent 48,106 bytes  received 90 bytes  96,392.00 bytes/sec\ntotal size is 47,791  speedup is 0.99\n"
        );
    }
}
