package config

import (
	"net"
	"time"

	"kctl/kubelet/internal/server/auth"
	"kctl/proto/daemon"
)

// Serving is what the kubelet serves, and to whom.
type Serving struct {
	EnableServer bool // without it nothing listens on Port
	Address      string
	Port         int32
	ReadOnlyPort int32 // plain HTTP, without authentication; 0 for none
	TLSCertFile  string
	TLSKeyFile   string

	TLS daemon.TLSOptions

	// Who may use the kubelet's port.
	ClientCAFile               string
	AnonymousAuth              bool
	AuthenticationTokenWebhook bool
	AuthorizationMode          string // Webhook or AlwaysAllow
	// CacheTTLs is how long the API server's answers to both are cached.
	CacheTTLs auth.CacheTTLs

	// What the kubelet's port shows of the running program, and allows to be changed.
	EnableDebuggingHandlers   bool // all that leads into pods, and the three below
	EnableProfilingHandler    bool
	EnableContentionProfiling bool // is in the profiles
	EnableDebugFlagsHandler   bool
	EnableSystemLogHandler    bool // of the machine: /var/log
	EnableSystemLogQuery      bool // of services of the machine
	// VolumeStatsAggPeriod is how often volumes are measured for clients that ask; never, if it
	// is not positive.
	VolumeStatsAggPeriod time.Duration
	HealthzAddress       string
	HealthzPort          int32
}

func newServing() Serving {
	return Serving{
		EnableServer: true, Address: "0.0.0.0", Port: 10250, AuthorizationMode: "Webhook", AuthenticationTokenWebhook: true,
		HealthzAddress: "127.0.0.1", HealthzPort: 10248, EnableDebuggingHandlers: true, EnableProfilingHandler: true,
		EnableDebugFlagsHandler: true, EnableSystemLogHandler: true,
		VolumeStatsAggPeriod: time.Minute, CacheTTLs: auth.DefaultCacheTTLs,
	}
}

// validate is told whether there is an API server to ask.
func (s *Serving) validate(add report, withAPI bool) {
	for flag, address := range map[string]string{"--address": s.Address, "--healthz-bind-address": s.HealthzAddress} {
		if net.ParseIP(address) == nil {
			add("%s=%q is not an IP address", flag, address)
		}
	}
	for flag, port := range map[string]int32{"--port": s.Port, "--healthz-port": s.HealthzPort, "--read-only-port": s.ReadOnlyPort} {
		if port < 0 || port > 65535 {
			add("%s=%d is not a port", flag, port)
		}
	}
	if s.AuthorizationMode != "Webhook" && s.AuthorizationMode != "AlwaysAllow" {
		add("authorization.mode=%q: only Webhook and AlwaysAllow are supported", s.AuthorizationMode)
	}
	if s.AnonymousAuth && !withAPI && s.AuthorizationMode == "Webhook" {
		add("--anonymous-auth would let everybody do everything, because without --kubeconfig there is no API server to ask; " +
			"--authorization-mode=AlwaysAllow says that this is wanted")
	}
	if (s.TLSCertFile == "") != (s.TLSKeyFile == "") {
		add("--tls-cert-file and --tls-private-key-file go together")
	}
	if err := s.TLS.Validate(); err != nil {
		add("%w", err)
	}
	if s.EnableSystemLogQuery && !s.EnableSystemLogHandler {
		add("enableSystemLogQuery=true: it needs enableSystemLogHandler, which is off")
	}
}
