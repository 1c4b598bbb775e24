package config

import "kctl/proto/daemon"

const (
	noPeers    = "API servers do not forward requests to each other"
	noElection = "leaders are elected by their own leases only"
	onlyHTTPS  = "there is no plain HTTP; use --secure-port and --bind-address"
	asked      = "etcd is queried whenever metrics are scraped"
)

// unused are flags of kube-apiserver without an effect here.
var unused = []daemon.Unused{
	// What is always done, or needs no limit.
	{Flag: "watch-cache", Switch: true, Values: []string{"true"}, Why: "all reads are served from the watch cache"},
	{Flag: "watch-cache-sizes", Why: "the watch cache sizes itself"},
	{Flag: "default-watch-cache-size", Why: "the watch cache sizes itself"},
	{Flag: "delete-collection-workers", Why: "objects are deleted one at a time, which is as fast as etcd"},
	{Flag: "service-account-lookup", Switch: true, Values: []string{"true"}},
	{Flag: "aggregator-reject-forwarding-redirect", Switch: true, Values: []string{"true"}},
	{Flag: "enable-garbage-collector", Switch: true, Values: []string{"true"}, Why: "use --controllers=-garbagecollector to turn it off"},
	{Flag: "apiserver-count", Why: "API servers find each other by their leases"},
	{Flag: "etcd-count-metric-poll-period", Why: asked},
	{Flag: "etcd-db-metric-poll-interval", Why: asked},
	{Flag: "kubelet-port", Values: []string{"10250"}, Why: "each node publishes its kubelet's port"},
	{Flag: "kubelet-read-only-port", Why: "only the kubelets' secure port is used"},
	{Flag: "lease-reuse-duration-seconds", Why: "events share a lease for a twentieth of --event-ttl, at most a minute"},
	{Flag: "shutdown-watch-termination-grace-period", Why: "watches end after --shutdown-delay-duration"},
	{Flag: "storage-initialization-timeout", Why: "the server waits for etcd without a time limit"},
	{Flag: "storage-backend", Values: []string{"etcd3", ""}},
	{
		Flag: "storage-media-type", Values: []string{"application/json", ""},
		Why: "objects are stored as JSON, which kube-apiserver can read; its protobuf is readable here, too",
	},

	// What is not supported.
	{Flag: "insecure-port", Values: []string{"0"}, Why: onlyHTTPS},
	{Flag: "insecure-bind-address", Values: daemon.Off, Why: onlyHTTPS}, {Flag: "address", Values: daemon.Off, Why: onlyHTTPS},
	{Flag: "admission-control", Values: daemon.Off, Why: "use --enable-admission-plugins and --disable-admission-plugins instead"},
	{Flag: "enable-logs-handler", Switch: true, Values: daemon.Off, Why: "the log goes only to standard error"},
	{Flag: "debug-socket-path", Values: daemon.Off, Why: "use /debug/pprof, which needs authorization"},
	{Flag: "egress-selector-config-file", Values: daemon.Off, Why: "nodes, webhooks and extension API servers are reached directly"},
	{Flag: "etcd-servers-overrides", Values: daemon.Off, Why: "all resources are stored in the same etcd"},
	{
		Flag: "kubernetes-service-node-port", Values: []string{"0"},
		Why: "the service kubernetes can't have a node port; create another service for it",
	},
	{Flag: "max-connection-bytes-per-sec", Values: []string{"0"}},
	{Flag: "permit-port-sharing", Switch: true, Values: daemon.Off, Why: "two servers on one port would answer clients at random"},
	{Flag: "service-account-signing-endpoint", Values: daemon.Off, Why: "use --service-account-signing-key-file instead"},
	{Flag: "peer-advertise-ip", Values: daemon.Off, Why: noPeers},
	{Flag: "peer-advertise-port", Values: daemon.Off, Why: noPeers},
	{Flag: "peer-ca-file", Values: daemon.Off, Why: noPeers},
	{Flag: "coordinated-leadership-lease-duration", Why: noElection},
	{Flag: "coordinated-leadership-renew-deadline", Why: noElection},
	{Flag: "coordinated-leadership-retry-period", Why: noElection},
	{Flag: "emulation-forward-compatible", Switch: true, Values: daemon.Off, Why: daemon.OneVersion},
	{Flag: "runtime-config-emulation-forward-compatible", Switch: true, Values: daemon.Off, Why: daemon.OneVersion},
}
