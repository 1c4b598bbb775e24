package config

import "kctl/proto/daemon"

const (
	noPeers    = "API servers do not pass requests on to each other"
	noElection = "holders of leases elect themselves"
	asked      = "etcd is asked when the metrics are"
)

// unused are flags of kube-apiserver without an effect here.
var unused = []daemon.Unused{
	// What is always done, or needs no limit.
	{Flag: "watch-cache", Switch: true, Values: []string{"true"}, Why: "everything is read from it"},
	{Flag: "watch-cache-sizes", Why: "the watch cache keeps what watchers may still need"},
	{Flag: "default-watch-cache-size", Why: "the watch cache keeps what watchers may still need"},
	{Flag: "delete-collection-workers", Why: "one at a time keeps up with etcd"},
	{Flag: "service-account-lookup", Switch: true, Values: []string{"true"}},
	{Flag: "aggregator-reject-forwarding-redirect", Switch: true, Values: []string{"true"}},
	{Flag: "enable-garbage-collector", Switch: true, Values: []string{"true"}, Why: "--controllers=-garbagecollector switches it off"},
	{Flag: "apiserver-count", Why: "API servers count each other by leases"},
	{Flag: "etcd-count-metric-poll-period", Why: asked},
	{Flag: "etcd-db-metric-poll-interval", Why: asked},
	{Flag: "kubelet-port", Values: []string{"10250"}, Why: "nodes say at which port their kubelets are"},
	{Flag: "kubelet-read-only-port", Why: "kubelets are asked at their secure port only"},
	{Flag: "lease-reuse-duration-seconds", Why: "events share a lease for a twentieth of --event-ttl, a minute at most"},
	{Flag: "shutdown-watch-termination-grace-period", Why: "watches are ended when the others have been told to go elsewhere, after --shutdown-delay-duration"},
	{Flag: "storage-initialization-timeout", Why: "the start waits for etcd until it is told to stop"},
	{Flag: "storage-backend", Values: []string{"etcd3", ""}},
	{Flag: "storage-media-type", Values: []string{"application/json", ""}, Why: "objects are stored as JSON, which kube-apiserver reads; what it has stored as protobuf is read"},

	// What is not supported.
	{Flag: "admission-control", Values: daemon.Off, Why: "--enable-admission-plugins and --disable-admission-plugins took its place"},
	{Flag: "enable-logs-handler", Switch: true, Values: daemon.Off, Why: "the log goes to standard error only"},
	{Flag: "debug-socket-path", Values: daemon.Off, Why: "profiles are at /debug/pprof, for those who may"},
	{Flag: "egress-selector-config-file", Values: daemon.Off, Why: "nodes, webhooks and extensions are reached directly"},
	{Flag: "etcd-servers-overrides", Values: daemon.Off, Why: "all resources have one etcd"},
	{Flag: "kubernetes-service-node-port", Values: []string{"0"}, Why: "services other than kubernetes can have node ports"},
	{Flag: "max-connection-bytes-per-sec", Values: []string{"0"}},
	{Flag: "permit-port-sharing", Switch: true, Values: daemon.Off, Why: "who asks could not tell which server answers"},
	{Flag: "service-account-signing-endpoint", Values: daemon.Off, Why: "tokens are signed with --service-account-signing-key-file"},
	{Flag: "peer-advertise-ip", Values: daemon.Off, Why: noPeers},
	{Flag: "peer-advertise-port", Values: daemon.Off, Why: noPeers},
	{Flag: "peer-ca-file", Values: daemon.Off, Why: noPeers},
	{Flag: "coordinated-leadership-lease-duration", Why: noElection},
	{Flag: "coordinated-leadership-renew-deadline", Why: noElection},
	{Flag: "coordinated-leadership-retry-period", Why: noElection},
	{Flag: "emulation-forward-compatible", Switch: true, Values: daemon.Off, Why: daemon.OneVersion},
	{Flag: "runtime-config-emulation-forward-compatible", Switch: true, Values: daemon.Off, Why: daemon.OneVersion},
}
