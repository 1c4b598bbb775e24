// Package pki makes the keys and certificates by which the programs recognise each
// other: a certificate authority, what it signs, self-signed serving certificates
// for a program started alone, and service-account keys. Keys are ECDSA P-256,
// files are written whole or not at all, 0600 unless asked otherwise.
//
// kctl makes a cluster's files with it, daemons their own stand-ins. It does no
// network I/O.
package pki
