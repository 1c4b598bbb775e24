package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kctl/proto/daemon"
	"kctl/proto/leader"
	"kctl/proto/release"
	"kctl/scheduler/internal/delegatedauth"
	"kctl/scheduler/internal/profile"
	"kctl/scheduler/internal/queue"
)

// Options are the flags.
type Options struct {
	Kubeconfig  string
	ConfigFile  string
	PolicyFile  string
	BindAddress net.IP
	SecurePort  int
	CertFile    string
	KeyFile     string
	// Access is to whom the port answers. Its kubeconfigs are Kubeconfig if they are empty.
	Access    delegatedauth.Options
	Profiling bool
	// ContentionProfiling comes from the configuration file.
	ContentionProfiling bool
	// Election are flags; where one is not given, the configuration file's value counts.
	Election     leader.Flags
	ElectionLock string
	Logging      daemon.LogOptions
	// CertDir is for a self-signed certificate, where there is no CertFile.
	CertDir string
	TLS     daemon.TLSOptions
	// Master is the API server's address, instead of the kubeconfigs'.
	Master string
	// WriteConfigTo is a file for the configuration in effect; if set, the program only
	// writes it and exits.
	WriteConfigTo string
	// FlushAfter is how long a pod can be left without an attempt.
	FlushAfter   time.Duration
	FeatureGates map[string]string

	flags *pflag.FlagSet
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		BindAddress:  net.IPv4(127, 0, 0, 1),
		SecurePort:   10259,
		Profiling:    true,
		Access:       delegatedauth.NewOptions(),
		FlushAfter:   queue.DefaultFlushAfter,
		Election:     leader.DefaultFlags("kube-scheduler"),
		ElectionLock: "leases",
	}
}

// Flags are the flags with their values.
func (o *Options) Flags() *pflag.FlagSet { return o.flags }

// AddFlags binds the flags to fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig for the connection to the API server")
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile, "file with a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)")
	fs.StringVar(&o.PolicyFile, "policy-config-file", o.PolicyFile,
		"file with a scheduling Policy (v1) of Kubernetes before 1.23, which is converted, with notes in the log; can't be "+
			"used together with --config")
	fs.IPVar(&o.BindAddress, "bind-address", o.BindAddress, "address for health checks and metrics")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "HTTPS port for health checks and metrics; 0 for none")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "serving certificate (default: self-signed, in memory)")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "key of the serving certificate")
	o.Access.AddFlags(fs)
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling,
		"serve Go profiles at /debug/pprof and changes of the log verbosity at /debug/flags/v, to users authorized for these paths")
	o.Election.Add(fs, "schedule only while holding the lease")
	fs.StringVar(&o.ElectionLock, "leader-elect-resource-lock", o.ElectionLock, "type of the leader election lock; only leases is supported")
	fs.StringVar(&o.Master, "master", o.Master, "address of the API server, instead of the kubeconfig's")
	fs.StringVar(&o.WriteConfigTo, "write-config-to", o.WriteConfigTo, "write the effective configuration to this file and exit")
	fs.DurationVar(&o.FlushAfter, "pod-max-in-unschedulable-pods-duration", o.FlushAfter,
		"how long a pod may stay unschedulable before it is tried again")
	fs.BoolVar(&o.ContentionProfiling, "contention-profiling", o.ContentionProfiling,
		"record contention for locks and channels; with --config, set it in the file instead")
	daemon.PairsVar(fs, &o.FeatureGates, "feature-gates", "",
		"feature gates as NAME=true|false,…; most can only be set to their defaults, and a value that is not supported is an error")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir,
		"directory for the self-signed certificate that is used without --tls-cert-file (default: kept in memory)")
	o.TLS.AddFlags(fs)
	o.TLS.AddHTTP2Flag(fs)
	daemon.AddUnused(fs, daemon.UnusedComponent...)
	daemon.AddUnused(fs, unused...)
	o.Logging.AddFlags(fs)
}

// Complete reads the configuration file, lets the flags that were given win
// over it, and checks the whole. Errors are about how the program was called.
func (o *Options) Complete() (*profile.Configuration, error) {
	configuration, err := profile.Default()
	switch {
	case o.ConfigFile != "" && o.PolicyFile != "":
		err = errors.New("--config and --policy-config-file: use only one of them")
	case o.ConfigFile != "":
		configuration, err = profile.Load(o.ConfigFile)
	case o.PolicyFile != "":
		configuration, err = profile.LoadPolicy(o.PolicyFile)
	}
	if err != nil {
		return nil, err
	}
	o.electionFromFile(configuration)
	if !o.given("profiling") {
		o.Profiling = configuration.Profiling
	}
	if o.ConfigFile != "" || !o.given("contention-profiling") {
		o.ContentionProfiling = configuration.ContentionProfiling
	}
	if o.Kubeconfig == "" {
		o.Kubeconfig = configuration.Kubeconfig
	}
	o.toFile(configuration)
	return configuration, errors.Join(o.TLS.Validate(), o.Access.Validate(), o.Election.Validate(), o.validateGates(), o.validate())
}

// toFile writes the flags in effect into the configuration.
func (o *Options) toFile(c *profile.Configuration) {
	file, e := &c.LeaderElection, &o.Election
	file.LeaderElect, file.ResourceName, file.ResourceNamespace = &e.Enabled, e.Name, e.Namespace
	file.LeaseDuration.Duration, file.RenewDeadline.Duration, file.RetryPeriod.Duration = e.LeaseDuration, e.RenewDeadline, e.RetryPeriod
	c.Kubeconfig, c.Profiling, c.ContentionProfiling = o.Kubeconfig, o.Profiling, o.ContentionProfiling
}

func (o *Options) electionFromFile(c *profile.Configuration) {
	file, e := &c.LeaderElection, &o.Election
	if !o.given("leader-elect") {
		e.Enabled = *file.LeaderElect
	}
	if !o.given("leader-elect-lease-duration") {
		e.LeaseDuration = file.LeaseDuration.Duration
	}
	if !o.given("leader-elect-renew-deadline") {
		e.RenewDeadline = file.RenewDeadline.Duration
	}
	if !o.given("leader-elect-retry-period") {
		e.RetryPeriod = file.RetryPeriod.Duration
	}
	if !o.given("leader-elect-resource-name") {
		e.Name = file.ResourceName
	}
	if !o.given("leader-elect-resource-namespace") {
		e.Namespace = file.ResourceNamespace
	}
}

// given reports whether a flag is on the command line.
func (o *Options) given(flag string) bool { return o.flags != nil && o.flags.Changed(flag) }

func (o *Options) validate() error {
	var errs []error
	if o.FlushAfter <= 0 {
		errs = append(errs, fmt.Errorf("--pod-max-in-unschedulable-pods-duration=%s: must be positive", o.FlushAfter))
	}
	if o.Kubeconfig == "" && o.WriteConfigTo == "" {
		errs = append(errs, errors.New("--kubeconfig: required, here or as clientConnection.kubeconfig in --config"))
	}
	if o.SecurePort < 0 || o.SecurePort > 65535 {
		errs = append(errs, fmt.Errorf("--secure-port=%d: not a port", o.SecurePort))
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file: must be set together"))
	}
	if o.ElectionLock != "leases" {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-lock=%s: only leases are supported", o.ElectionLock))
	}
	return errors.Join(errs...)
}

// validateGates checks feature gates in kube-scheduler's form, with the name of
// the component that they are for.
func (o *Options) validateGates() error {
	gates := map[string]string{}
	for name, value := range o.FeatureGates {
		gates[strings.TrimPrefix(name, "kube:")] = value
	}
	return release.CheckGates(gates, nil)
}

// Address is where health checks and metrics are served.
func (o *Options) Address() string {
	return net.JoinHostPort(o.BindAddress.String(), strconv.Itoa(o.SecurePort))
}
