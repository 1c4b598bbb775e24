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
	fs.StringVar(&o.ServiceClusterIPRange, "service-cluster-ip-range", o.ServiceClusterIPRange, "range that services get their addresses from, or an IPv4 and an IPv6 one with a comma between, the default one first; they must overlap neither nodes nor pods")
	fs.StringVar(&o.ServiceNodePortRange, "service-node-port-range", o.ServiceNodePortRange, "ports of every node that services of type NodePort get theirs from, as FROM-TO")
	o.NodeRanges.addFlags(fs)
	fs.DurationVar(&o.NodeMonitorGrace, "node-monitor-grace-period", o.NodeMonitorGrace, "how long a node may be silent before it counts as lost; several times as long as kubelets take to renew their leases")
	fs.DurationVar(&o.LegacyTokenPeriod, "legacy-service-account-token-clean-up-period", o.LegacyTokenPeriod, "how long a token in a secret that nobody asked for may stay unused before it is taken out of use, and then before it is removed")
	fs.StringSliceVar(&o.EnableAdmissionPlugins, "enable-admission-plugins", o.EnableAdmissionPlugins, "admission plugins to run in addition to the default ones")
	fs.StringSliceVar(&o.DisableAdmissionPlugins, "disable-admission-plugins", o.DisableAdmissionPlugins, "default admission plugins not to run")
	fs.StringVar(&o.AdmissionControlConfigFile, "admission-control-config-file", o.AdmissionControlConfigFile, "file with the configuration of admission plugins (AdmissionConfiguration of apiserver.config.k8s.io/v1)")
	fs.Int64Var(&o.NotReadySeconds, "default-not-ready-toleration-seconds", o.NotReadySeconds, "how long pods that say nothing about it stay on a node that is not ready")
	fs.Int64Var(&o.UnreachableSeconds, "default-unreachable-toleration-seconds", o.UnreachableSeconds, "how long pods that say nothing about it stay on a node that is not heard of")
	fs.StringVar(&o.KubeletClientCertificate, "kubelet-client-certificate", o.KubeletClientCertificate, "client certificate to show to kubelets")
	fs.StringVar(&o.KubeletClientKey, "kubelet-client-key", o.KubeletClientKey, "key of --kubelet-client-certificate")
	fs.StringVar(&o.KubeletCertificateAuthority, "kubelet-certificate-authority", o.KubeletCertificateAuthority, "authority that kubelets' serving certificates are checked against")
	fs.StringSliceVar(&o.KubeletPreferredAddressTypes, "kubelet-preferred-address-types", o.KubeletPreferredAddressTypes, "node address types to reach kubelets by, best first")
	fs.DurationVar(&o.KubeletTimeout, "kubelet-timeout", o.KubeletTimeout, "how long connecting to a kubelet may take")
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "housekeeping loops to run: * for all, NAME for one, -NAME to leave one out (where kube-controller-manager runs it)")
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve the Go runtime's profiles at /debug/pprof and let the log verbosity be changed at /debug/flags/v, for whoever may use these paths")
	o.Aggregation.addFlags(fs)
	o.Audit.addFlags(fs)
	o.Encryption.addFlags(fs)
	o.Operation.addFlags(fs)
	o.Log.AddFlags(fs)
	daemon.AddUnused(fs, daemon.UnusedComponent...)
	daemon.AddUnused(fs, unused...)
}

func (o *Options) addServing(fs *pflag.FlagSet) {
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to serve on (default: all addresses where --advertise-address is given, as in kubeadm's manifest, otherwise 127.0.0.1)")
	fs.StringVar(&o.AdvertiseAddress, "advertise-address", o.AdvertiseAddress, "IP address by which pods and other machines reach this server, for the endpoints of the service kubernetes (default: --bind-address, or, where that is 0.0.0.0 or ::, the one that packets leave this machine from; none where it is loopback)")
	fs.StringVar(&o.ExternalHostname, "external-hostname", o.ExternalHostname, "name by which others reach this server, in URLs that it tells (default: its address)")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "port to serve HTTPS on; 0 takes any free one and writes it to <data-dir>/apiserver.port")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "serving certificate; without it a self-signed one is made in --cert-dir")
	fs.StringVar(&o.TLSKeyFile, "tls-private-key-file", o.TLSKeyFile, "key of --tls-cert-file")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir, "where the self-signed serving certificate is kept (default <data-dir>/pki)")
	fs.StringVar(&o.RootCAFile, "root-ca-file", o.RootCAFile, "authority published to pods as the ConfigMap kube-root-ca.crt in every namespace (default --client-ca-file, else the self-signed certificate)")
	fs.IntVar(&o.MaxRequestsInFlight, "max-requests-inflight", o.MaxRequestsInFlight, "how many reading requests are served at once, 0 for no limit")
	fs.BoolVar(&o.EnablePriorityAndFairness, "enable-priority-and-fairness", o.EnablePriorityAndFairness, "share requests out by flow schemas and priority levels; both --max-...-inflight together are how many are served at once. Without it, each of them bounds its own")
	fs.IntVar(&o.MaxMutatingRequestsInFlight, "max-mutating-requests-inflight", o.MaxMutatingRequestsInFlight, "how many writing requests are served at once, 0 for no limit")
	fs.Int64Var(&o.MaxRequestBodyBytes, "max-request-body-bytes", o.MaxRequestBodyBytes, "size of the largest request body taken (upstream's fixed limit is the default)")
	fs.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout, "how long a request may take that is not a watch or a stream")
	fs.IntVar(&o.MinRequestTimeout, "min-request-timeout", o.MinRequestTimeout, "how many seconds a watch lasts at least whose client names no time; twice as many at most")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", o.ShutdownDelay, "how long to go on serving, not ready, after being told to stop, so that load balancers notice")
}

func (o *Options) addStorage(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "directory of the embedded etcd and the server's own files")
	fs.StringSliceVar(&o.EtcdServers, "etcd-servers", o.EtcdServers, "URLs of an etcd cluster; without it an embedded etcd runs in --data-dir")
	fs.StringVar(&o.EtcdPrefix, "etcd-prefix", o.EtcdPrefix, "prefix of all keys in etcd")
	fs.StringVar(&o.EtcdCAFile, "etcd-cafile", o.EtcdCAFile, "authority of etcd's certificates")
	fs.StringVar(&o.EtcdCertFile, "etcd-certfile", o.EtcdCertFile, "client certificate to show to etcd")
	fs.StringVar(&o.EtcdKeyFile, "etcd-keyfile", o.EtcdKeyFile, "key of --etcd-certfile")
	fs.DurationVar(&o.LivezGrace, "livez-grace-period", o.LivezGrace, "how long after the start /livez takes it that what is done then will be done")
	fs.DurationVar(&o.EtcdCheckTimeout, "etcd-healthcheck-timeout", o.EtcdCheckTimeout, "how long etcd may take to answer before it counts as ill")
	fs.DurationVar(&o.EtcdCheckTimeout, "etcd-readycheck-timeout", o.EtcdCheckTimeout, "the same as --etcd-healthcheck-timeout")
	fs.DurationVar(&o.EventTTL, "event-ttl", o.EventTTL, "how long events are kept")
}

func (o *Options) addAuthentication(fs *pflag.FlagSet) {
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "authority of client certificates; without it none is accepted")
	fs.StringVar(&o.TokenAuthFile, "token-auth-file", o.TokenAuthFile, `file of static tokens, lines of token,user,uid,"group1,group2"`)
	fs.BoolVar(&o.AnonymousAuth, "anonymous-auth", o.AnonymousAuth, "let requests without any credential in as system:anonymous: true all, false none; where nobody says, those for /healthz, /livez and /readyz")
	fs.StringSliceVar(&o.ServiceAccountKeyFiles, "service-account-key-file", o.ServiceAccountKeyFiles, "public (or private) keys that service account tokens are checked with (default --service-account-signing-key-file)")
	fs.StringVar(&o.ServiceAccountSigningKeyFile, "service-account-signing-key-file", o.ServiceAccountSigningKeyFile, "private key that service account tokens are signed with (default: one made in --cert-dir)")
	fs.StringSliceVar(&o.ServiceAccountIssuers, "service-account-issuer", o.ServiceAccountIssuers, "issuer of service account tokens; the first signs, all are accepted")
	fs.StringVar(&o.ServiceAccountJWKSURI, "service-account-jwks-uri", o.ServiceAccountJWKSURI, "where /.well-known/openid-configuration says that the keys of service account tokens are (default: at this server, by --advertise-address)")
	o.AccountTokens.addFlags(fs)
	fs.StringSliceVar(&o.APIAudiences, "api-audiences", o.APIAudiences, "audiences that the API accepts tokens for (default --service-account-issuer)")
}
