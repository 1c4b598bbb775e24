package config

import "kctl/proto/daemon"

const (
	notHeldBack   = "requests are not held back here; the API server's limits do that"
	nobodySpeaks  = "callers show a certificate or a token of their own; nobody may name users for them"
	askedAnew     = "the API server is asked each time"
	nothingLooked = "nothing is looked up in the cluster; --client-ca-file says whose certificates count"
)

// unused are kube-scheduler's flags that have no effect here.
var unused = []daemon.Unused{
	{Flag: "kube-api-qps", Why: notHeldBack},
	{Flag: "kube-api-burst", Why: notHeldBack},
	{Flag: "kube-api-content-type", Why: "application/json is spoken"},
	{Flag: "authentication-skip-lookup", Switch: true, Why: nothingLooked},
	{Flag: "authentication-tolerate-lookup-failure", Switch: true, Why: nothingLooked},
	{Flag: "authentication-token-webhook-cache-ttl", Why: askedAnew},
	{Flag: "authorization-webhook-cache-authorized-ttl", Why: askedAnew},
	{Flag: "authorization-webhook-cache-unauthorized-ttl", Why: askedAnew},
	{Flag: "permit-port-sharing", Switch: true, Values: daemon.Off, Why: "who asks could not tell which scheduler answers"},
	{Flag: "http2-max-streams-per-connection", Values: daemon.Off, Why: "Go's bound holds"},
	{Flag: "tls-sni-cert-key", Values: daemon.Off, Why: "--tls-cert-file can have all names"},
	{Flag: "requestheader-client-ca-file", Values: daemon.Off, Why: nobodySpeaks},
	{Flag: "requestheader-allowed-names", Values: daemon.Off, Why: nobodySpeaks},
	{Flag: "requestheader-extra-headers-prefix", Values: []string{"x-remote-extra-"}, Why: nobodySpeaks},
	{Flag: "requestheader-group-headers", Values: []string{"x-remote-group"}, Why: nobodySpeaks},
	{Flag: "requestheader-uid-headers", Values: daemon.Off, Why: nobodySpeaks},
	{Flag: "requestheader-username-headers", Values: []string{"x-remote-user"}, Why: nobodySpeaks},
}
