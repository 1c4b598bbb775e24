// Package encrypt protects stored values from anyone who can read etcd, or a
// copy of it: as an EncryptionConfiguration says, it seals each value on its
// way into the store and opens it on its way out (Kubernetes docs, "Encrypting
// Confidential Data at Rest"; KEP-3299 for KMS v2).
//
// The etcd store calls it. The formats are upstream's, byte for byte, so that
// each can read what the other wrote. It sees values and keys, never requests,
// and no error shows any part of a value or a secret.
package encrypt
