// Package encrypt keeps what is stored from those who can read etcd, or a copy
// of it: by an EncryptionConfiguration it seals each value on its way into the
// store and opens it on its way out (Kubernetes docs, "Encrypting Confidential
// Data at Rest"; KEP-3299 for KMS v2).
//
// The etcd store calls it. The forms are upstream's, byte for byte, so that
// either reads what the other wrote. It sees values and keys, never requests,
// and shows nothing of a value or a secret in an error.
package encrypt
