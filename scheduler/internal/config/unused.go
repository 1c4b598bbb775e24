package config

import "kctl/proto/daemon"

const (
	notHeldBack   = "this program does not limit its own request rate; the API server's limits apply"
	nobodySpeaks  = "clients authenticate with a certificate or token of their own; proxies that name the user in headers are not trusted"
	askedAnew     = "answers are not cached; the API server is asked each time"
	nothingLooked = "nothing is looked up in the cluster; --client-ca-file sets the CA for client certificates"
)

// unused are kube-scheduler's flags that have no effect here.
var unused = []daemon.Unused{
	{Flag: "kube-api-qps", Why: notHeldBack},
	{Flag: "kube-api-burst", Why: notHeldBack},
	{Flag: "kube-api-content-type", Why: "this program always uses application/json"},
	{Flag: "authentication-skip-lookup", Switch: true, Why: nothingLooked},
	{Flag: "authentication-tolerate-lookup-failure", Switch: true, Why: nothingLooked},
	{Flag: "authentication-token-webhook-cache-ttl", Why: askedAnew},
	{Flag: "authorization-webhook-cache-authorized-ttl", Why: askedAnew},
	{Flag: "authorization-webhook-cache-unauthorized-ttl", Why: askedAnew},
	{Flag: "permit-port-sharing", Switch: true, Values: daemon.Off, Why: "two schedulers on one port would answer health checks and scrapes at random"},
	{Flag: "http2-max-streams-per-connection", Values: daemon.Off, Why: "the limit is that of Go's HTTP/2 server"},
	{Flag: "tls-sni-cert-key", Values: daemon.Off, Why: "use a certificate in --tls-cert-file that has all names"},
	{Flag: "requestheader-client-ca-file", Values: daemon.Off, Why: nobodySpeaks},
	{Flag: "requestheader-allowed-names", Values: daemon.Off, Why: nobodySpeaks},
	{Flag: "requestheader-extra-headers-prefix", Values: []string{"x-remote-extra-"}, Why: nobodySpeaks},
	{Flag: "requestheader-group-headers", Values: []string{"x-remote-group"}, Why: nobodySpeaks},
	{Flag: "requestheader-uid-headers", Values: daemon.Off, Why: nobodySpeaks},
	{Flag: "requestheader-username-headers", Values: []string{"x-remote-user"}, Why: nobodySpeaks},
}
