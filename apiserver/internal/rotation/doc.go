// Package rotation carries requests to other servers by connections that show the client
// certificate, and trust the authorities, that are in the files now.
//
// A connection shows the certificate with which it began for as long as it lives, and one that
// is in use all the time lives for ever: a server that judges each request by it would refuse
// them once it has expired, although a new one has been in the files for long.
//
// Whatever of the API server has a client certificate may use it. It never ends what is under
// way, and never reads a file itself: pki does.
package rotation
