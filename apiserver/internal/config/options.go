package config

import (
	"time"

	"github.com/spf13/pflag"

	"kctl/proto/daemon"
)

// Options are the API server's flags. Names and meanings are upstream's,
// except where a flag's help says otherwise.
type Options struct {
	BindAddress      string
	AdvertiseAddress string
	ExternalHostname string
	SecurePort       int
	DataDir          string
	CertDir          string

	EtcdServers  []string
	EtcdPrefix   string
	EtcdCAFile   string
	EtcdCertFile string
	EtcdKeyFile  string

	TLSCertFile  string
	TLSKeyFile   string
	ClientCAFile string
	RootCAFile   string

	TokenAuthFile                string
	AnonymousAuth                bool
	ServiceAccountKeyFiles       []string
	ServiceAccountSigningKeyFile string
	ServiceAccountIssuers        []string
	ServiceAccountJWKSURI        string
	AccountTokens                AccountTokens
	APIAudiences                 []string
	BootstrapTokenAuth           bool
	TokenWebhook                 Webhook
	RequestHeader                RequestHeader
	OIDC                         OIDC
	AuthenticationConfig         string // a file, instead of OIDC and AnonymousAuth

	AuthorizationModes      []string
	AuthorizationConfig     string // a file, instead of the modes
	AuthorizationPolicyFile string
	AuthorizationWebhook    Webhook

	ClusterSigning ClusterSigning

	ServiceClusterIPRange string
	ServiceNodePortRange  string
	NodeRanges            NodeRanges
	NodeMonitorGrace      time.Duration
	MaxTerminatedPods     int
	LegacyTokenPeriod     time.Duration

	EnableAdmissionPlugins  []string
	DisableAdmissionPlugins []string
	// AdmissionControlConfigFile configures plugins.
	AdmissionControlConfigFile string
	// NotReadySeconds and UnreachableSeconds are how long pods without tolerations
	// stay on such a node.
	NotReadySeconds, UnreachableSeconds int64

	MaxRequestsInFlight         int
	EnablePriorityAndFairness   bool
	MaxMutatingRequestsInFlight int
	MaxRequestBodyBytes         int64
	RequestTimeout              time.Duration
	// MinRequestTimeout is the shortest time, in seconds, that a watch without
	// timeoutSeconds lasts.
	MinRequestTimeout int
	ShutdownDelay     time.Duration
	EventTTL          time.Duration
	EtcdCheckTimeout  time.Duration
	LivezGrace        time.Duration

	KubeletClientCertificate     string
	KubeletClientKey             string
	KubeletCertificateAuthority  string
	KubeletPreferredAddressTypes []string
	KubeletTimeout               time.Duration

	Aggregation Aggregation

	Controllers []string
	Profiling   bool

	Audit      Audit
	Encryption Encryption
	Operation  Operation
	Log        daemon.LogOptions

	flags *pflag.FlagSet // nil without a command line
}

// Defaults are the options without any flag.
func Defaults() *Options {
	return &Options{
		SecurePort:                   6443,
		DataDir:                      "/var/lib/kctl/apiserver",
		EtcdPrefix:                   "/registry",
		ServiceAccountIssuers:        []string{"https://kubernetes.default.svc.cluster.local"},
		AuthorizationModes:           []string{ModeRBAC},
		TokenWebhook:                 Webhook{Version: defaultReviewVersion, TTL: tokenReviewTTL},
		AuthorizationWebhook:         Webhook{Version: defaultReviewVersion, TTL: allowedTTL, RefusedTTL: refusedTTL},
		ClusterSigning:               ClusterSigning{Duration: signingDuration},
		OIDC:                         OIDC{UsernameClaim: usernameClaim, SigningAlgorithms: []string{"RS256"}},
		ServiceClusterIPRange:        "10.0.0.0/24",
		ServiceNodePortRange:         "30000-32767",
		NodeMonitorGrace:             defaultNodeGrace,
		MaxTerminatedPods:            12500,
		LegacyTokenPeriod:            defaultLegacyTokenPeriod,
		MaxRequestsInFlight:          400,
		EnablePriorityAndFairness:    true,
		MaxMutatingRequestsInFlight:  200,
		MaxRequestBodyBytes:          3 << 20,
		RequestTimeout:               time.Minute,
		MinRequestTimeout:            1800,
		EtcdCheckTimeout:             2 * time.Second,
		KubeletTimeout:               5 * time.Second,
		NotReadySeconds:              300,
		UnreachableSeconds:           300,
		AccountTokens:                AccountTokens{Extend: true},
		EventTTL:                     time.Hour,
		KubeletPreferredAddressTypes: []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"},
		Controllers:                  []string{"*"},
		Profiling:                    true,
		Audit:                        auditDefaults(),
		Operation:                    operationDefaults(),
	}
}

// Flags are the flags with their values; nil without a command line.
func (o *Options) Flags() *pflag.FlagSet { return o.flags }

// AddFlags binds the options to flags, with their present values as defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.flags = fs
	o.addServing(fs)
	o.addStorage(fs)
	o.addAuthentication(fs)
	o.addIdentities(fs)
	o.addAuthorization(fs)
	o.ClusterSigning.addFlags(fs)
	fs.StringVar(&o.ServiceClusterIPRange, "service-cluster-ip-range", o.ServiceClusterIPRange,
		"range for service addresses; for dual stack IPv4 and IPv6 ranges separated by a comma, the default family first. It must not "+
			"overlap node or pod addresses")
	fs.StringVar(&o.ServiceNodePortRange, "service-node-port-range", o.ServiceNodePortRange,
		"port range for services of type NodePort, as FROM-TO")
	o.NodeRanges.addFlags(fs)
	fs.DurationVar(&o.NodeMonitorGrace, "node-monitor-grace-period", o.NodeMonitorGrace,
		"how long a node may go without renewing its lease before it is marked unreachable; must be several times the kubelets' renewal interval")
	fs.IntVar(&o.MaxTerminatedPods, "terminated-pod-gc-threshold", o.MaxTerminatedPods,
		"how many pods that have ended are kept; beyond that evicted ones and the oldest are deleted. 0 or less for no limit")
	fs.DurationVar(&o.LegacyTokenPeriod, "legacy-service-account-token-clean-up-period", o.LegacyTokenPeriod,
		"how long an auto-generated token in a secret may stay unused before it is invalidated, and after that again before it is deleted")
	fs.StringSliceVar(&o.EnableAdmissionPlugins, "enable-admission-plugins", o.EnableAdmissionPlugins,
		"admission plugins to enable in addition to the default ones")
	fs.StringSliceVar(&o.DisableAdmissionPlugins, "disable-admission-plugins", o.DisableAdmissionPlugins,
		"default admission plugins to disable")
	fs.StringVar(&o.AdmissionControlConfigFile, "admission-control-config-file", o.AdmissionControlConfigFile,
		"file with the configuration of admission plugins (AdmissionConfiguration of apiserver.config.k8s.io/v1)")
	fs.Int64Var(&o.NotReadySeconds, "default-not-ready-toleration-seconds", o.NotReadySeconds,
		"seconds that pods without such a toleration stay on a node that is not ready")
	fs.Int64Var(&o.UnreachableSeconds, "default-unreachable-toleration-seconds", o.UnreachableSeconds,
		"seconds that pods without such a toleration stay on an unreachable node")
	fs.StringVar(&o.KubeletClientCertificate, "kubelet-client-certificate", o.KubeletClientCertificate,
		"client certificate for connections to kubelets")
	fs.StringVar(&o.KubeletClientKey, "kubelet-client-key", o.KubeletClientKey, "key of --kubelet-client-certificate")
	fs.StringVar(&o.KubeletCertificateAuthority, "kubelet-certificate-authority", o.KubeletCertificateAuthority,
		"CA that kubelets' serving certificates must be signed by")
	fs.StringSliceVar(&o.KubeletPreferredAddressTypes, "kubelet-preferred-address-types", o.KubeletPreferredAddressTypes,
		"node address types to use for kubelets, in order of preference")
	fs.DurationVar(&o.KubeletTimeout, "kubelet-timeout", o.KubeletTimeout, "timeout for connecting to a kubelet")
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers,
		"housekeeping loops to run: * for all, NAME to enable one, -NAME to disable one (for example, if kube-controller-manager runs it)")
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling,
		"serve Go profiles at /debug/pprof and changes of the log verbosity at /debug/flags/v, to users authorized for these paths")
	o.Aggregation.addFlags(fs)
	o.Audit.addFlags(fs)
	o.Encryption.addFlags(fs)
	o.Operation.addFlags(fs)
	o.Log.AddFlags(fs)
	daemon.AddUnused(fs, daemon.UnusedComponent...)
	daemon.AddUnused(fs, unused...)
}

func (o *Options) addServing(fs *pflag.FlagSet) {
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"IP address to serve on (default: all addresses if --advertise-address is set, as in kubeadm's manifest, otherwise 127.0.0.1)")
	fs.StringVar(&o.AdvertiseAddress, "advertise-address", o.AdvertiseAddress,
		"IP address that pods and other machines use to reach this server, published in the endpoints of the service kubernetes (default: "+
			"--bind-address, or the address of the default route if that is 0.0.0.0 or ::; none if it is loopback)")
	fs.StringVar(&o.ExternalHostname, "external-hostname", o.ExternalHostname,
		"host name of this server in URLs that it publishes (default: its address)")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort,
		"port to serve HTTPS on; 0 picks a free one and writes it to <data-dir>/apiserver.port")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "serving certificate; without it a self-signed one is made in --cert-dir")
	fs.StringVar(&o.TLSKeyFile, "tls-private-key-file", o.TLSKeyFile, "key of --tls-cert-file")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir, "where the self-signed serving certificate is kept (default <data-dir>/pki)")
	fs.StringVar(&o.RootCAFile, "root-ca-file", o.RootCAFile,
		"CA published to pods as the ConfigMap kube-root-ca.crt in every namespace (default --client-ca-file, else the self-signed certificate)")
	fs.IntVar(&o.MaxRequestsInFlight, "max-requests-inflight", o.MaxRequestsInFlight,
		"maximum number of reading requests in progress, 0 for no limit")
	fs.BoolVar(&o.EnablePriorityAndFairness, "enable-priority-and-fairness", o.EnablePriorityAndFairness,
		"schedule requests by flow schemas and priority levels, within the sum of both --max-...-inflight limits; if false, each limit applies "+
			"to its own kind of requests")
	fs.IntVar(&o.MaxMutatingRequestsInFlight, "max-mutating-requests-inflight", o.MaxMutatingRequestsInFlight,
		"maximum number of writing requests in progress, 0 for no limit")
	fs.Int64Var(&o.MaxRequestBodyBytes, "max-request-body-bytes", o.MaxRequestBodyBytes,
		"maximum size of a request body (the default is upstream's fixed limit)")
	fs.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout, "timeout for requests other than watches and streams")
	fs.IntVar(&o.MinRequestTimeout, "min-request-timeout", o.MinRequestTimeout,
		"minimum duration in seconds of a watch without a timeout of its own; the maximum is twice that")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", o.ShutdownDelay,
		"how long to keep serving, while reporting not ready, after a request to stop, so that load balancers notice")
}

func (o *Options) addStorage(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "directory for the embedded etcd and the server's own files")
	fs.StringSliceVar(&o.EtcdServers, "etcd-servers", o.EtcdServers,
		"URLs of an etcd cluster; if not set, an embedded etcd runs in --data-dir")
	fs.StringVar(&o.EtcdPrefix, "etcd-prefix", o.EtcdPrefix, "prefix of all keys in etcd")
	fs.StringVar(&o.EtcdCAFile, "etcd-cafile", o.EtcdCAFile, "CA that etcd's certificates must be signed by")
	fs.StringVar(&o.EtcdCertFile, "etcd-certfile", o.EtcdCertFile, "client certificate for connections to etcd")
	fs.StringVar(&o.EtcdKeyFile, "etcd-keyfile", o.EtcdKeyFile, "key of --etcd-certfile")
	fs.DurationVar(&o.LivezGrace, "livez-grace-period", o.LivezGrace,
		"how long after startup /livez ignores start-up work that has not finished")
	fs.DurationVar(&o.EtcdCheckTimeout, "etcd-healthcheck-timeout", o.EtcdCheckTimeout, "timeout of health checks of etcd")
	fs.DurationVar(&o.EtcdCheckTimeout, "etcd-readycheck-timeout", o.EtcdCheckTimeout, "the same as --etcd-healthcheck-timeout")
	fs.DurationVar(&o.EventTTL, "event-ttl", o.EventTTL, "how long events are kept before they are deleted")
}

func (o *Options) addAuthentication(fs *pflag.FlagSet) {
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"CA that client certificates must be signed by; if not set, none are accepted")
	fs.StringVar(&o.TokenAuthFile, "token-auth-file", o.TokenAuthFile, `file of static tokens, lines of token,user,uid,"group1,group2"`)
	fs.BoolVar(&o.AnonymousAuth, "anonymous-auth", o.AnonymousAuth,
		"accept requests without credentials as system:anonymous: true accepts all, false none; if not set, only those for /healthz, "+
			"/livez and /readyz are accepted")
	fs.StringSliceVar(&o.ServiceAccountKeyFiles, "service-account-key-file", o.ServiceAccountKeyFiles,
		"public (or private) keys that verify service account tokens (default --service-account-signing-key-file)")
	fs.StringVar(&o.ServiceAccountSigningKeyFile, "service-account-signing-key-file", o.ServiceAccountSigningKeyFile,
		"private key that signs service account tokens (default: generated in --cert-dir)")
	fs.StringSliceVar(&o.ServiceAccountIssuers, "service-account-issuer", o.ServiceAccountIssuers,
		"issuers of service account tokens; the first is put into new tokens, all are accepted")
	fs.StringVar(&o.ServiceAccountJWKSURI, "service-account-jwks-uri", o.ServiceAccountJWKSURI,
		"URL of the service account token keys that /.well-known/openid-configuration publishes (default: on this "+
			"server, at --advertise-address)")
	o.AccountTokens.addFlags(fs)
	fs.StringSliceVar(&o.APIAudiences, "api-audiences", o.APIAudiences,
		"token audiences that the API accepts (default --service-account-issuer)")
}
