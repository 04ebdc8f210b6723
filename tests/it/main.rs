//! All integration tests, in one binary. `tests/CATALOG.md` lists the cases.

// Helpers of tests are tests, which the lints' own exceptions for tests don't see.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod activity;
mod activity_screens;
mod ask_life;
mod attachments;
mod barred;
mod broadcast;
mod catalog;
mod chief_service;
mod claims;
mod cli;
mod cli_check;
mod cli_config;
mod cli_doctor;
mod cli_herd;
mod cli_support;
#[cfg(debug_assertions)]
mod composing;
mod console_crashes;
mod control;
mod control_flood;
mod control_life;
// Only debug builds can be told where to end.
#[cfg(debug_assertions)]
mod crashes;
mod demo_console;
mod demo_play;
mod demo_world;
mod differences;
mod documents;
mod editor;
mod escapes;
mod fates;
mod follow;
mod fuzz_corpora;
mod golden;
mod golden_records;
mod golden_trees;
mod grep;
mod herd_properties;
mod herd_rules;
mod herd_vectors;
mod herdr_client;
mod herdr_register;
mod herdr_wire;
mod hostile_files;
mod hostile_herdr;
mod hour;
mod inbox;
mod inbox_screen;
mod inspect;
mod lead_authority;
mod lead_health;
mod lead_listing;
mod lead_scene;
mod lead_side;
mod lead_verbs;
mod lessons_screen;
mod managed;
mod managed_herd;
mod managed_mailboxes;
mod managed_screens;
mod memories;
mod model_properties;
mod overflow;
mod owners;
mod peek;
mod peers;
mod pi_ending;
mod pi_fold;
mod pi_header;
mod pi_oracle;
mod pi_tail;
mod programs;
mod promises;
mod pty;
#[cfg(debug_assertions)]
mod races;
#[cfg(debug_assertions)]
mod races_inbox;
mod reception;
mod reception_again;
mod record_properties;
#[cfg(debug_assertions)]
mod recovering;
mod restarts;
mod screens;
mod search_screen;
mod send_id;
mod sent_drafts;
mod session_screens;
mod signals;
mod soak;
mod sorting;
mod sources;
mod stage;
mod state_block;
mod steering;
mod support;
mod surroundings;
mod terminal_life;
mod terminal_pty;
mod texts;
mod timeline;
mod transcript;
mod transcript_screen;
mod turn_log;
mod turns;
mod turns_wild;
mod verifier;
mod watching;
mod writing;
