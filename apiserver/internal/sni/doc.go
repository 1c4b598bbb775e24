// Package sni chooses the certificate for a client by the server name that it
// asks for (kube-apiserver's --tls-sni-cert-key).
//
// The server calls it for its port; it does not listen itself.
package sni
