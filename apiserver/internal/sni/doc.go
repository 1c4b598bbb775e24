// Package sni chooses the certificate that a client is shown by the name that it
// asks for (kube-apiserver's --tls-sni-cert-key).
//
// The server calls it for its port; it listens nowhere itself.
package sni
