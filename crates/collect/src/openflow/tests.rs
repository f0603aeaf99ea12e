//! Parts without a network.
