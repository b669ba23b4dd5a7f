//! State machines between the messages of the roles and bytes.
