//! The bodies of the fuzz targets. The crate's own tests replay the same functions over `corpus/`.

pub mod checks;
