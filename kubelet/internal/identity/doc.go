// Package identity is who a kubelet is: the node's name and addresses, the credentials that it shows
// to the API server, and the certificate that it serves with. It gets certificates and keeps them
// valid, with package certificate.
//
// The kubelet finds it first, and whoever needs a name or a certificate is given it. It never serves,
// and asks the API server for certificates only.
package identity
