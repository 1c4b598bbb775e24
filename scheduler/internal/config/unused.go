package config

import "kctl/proto/daemon"

const notHeldBack = "this program does not limit its own request rate; the API server's limits apply"

// unused are kube-scheduler's flags that have no effect here.
var unused = []daemon.Unused{
	{Flag: "kube-api-qps", Why: notHeldBack},
	{Flag: "kube-api-burst", Why: notHeldBack},
	{Flag: "kube-api-content-type", Why: "this program always uses application/json"},
	{Flag: "permit-port-sharing", Switch: true, Values: daemon.Off,
		Why: "two schedulers on one port would answer health checks and scrapes at random"},
	{Flag: "http2-max-streams-per-connection", Values: daemon.Off, Why: "the limit is that of Go's HTTP/2 server"},
	{Flag: "tls-sni-cert-key", Values: daemon.Off, Why: "use a certificate in --tls-cert-file that has all names"},
}
