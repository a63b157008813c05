//! Reading and following the log of one launch: pages, the tail, and a shared live tail.
