//! What is written of a run: folders, tables, the summary, the report.

mod common;
mod devtools;
mod folders;
mod reading;
mod report;
mod report_browser;
mod summary;
mod tables;
