package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	o := NewOptions()
	fs := pflag.NewFlagSet("scheduler", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func write(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+body), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagsWinOverTheFile(t *testing.T) {
	file := write(t, `
clientConnection: {kubeconfig: /from/file}
leaderElection: {leaderElect: false, leaseDuration: 60s, resourceName: from-file}
`)
	o := parse(t, "--config", file, "--leader-elect-lease-duration=30s")
	if _, err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if o.Kubeconfig != "/from/file" || o.Election.Enabled || o.Election.Name != "from-file" {
		t.Errorf("the file's values are not taken: %+v", o)
	}
	if o.Election.LeaseDuration != 30*time.Second {
		t.Errorf("lease duration %s, want the flag's", o.Election.LeaseDuration)
	}
}

func TestDefaults(t *testing.T) {
	o := parse(t, "--kubeconfig=k")
	if _, err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if o.Address() != "127.0.0.1:10259" || !o.Election.Enabled || o.Election.Name != "kube-scheduler" || o.Election.LeaseDuration != 15*time.Second {
		t.Errorf("defaults: %+v", o)
	}
}

// The flags in kubeadm's manifest of kube-scheduler.
func TestFlagsOfKubeadm(t *testing.T) {
	o := parse(t, "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf", "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
		"--bind-address=127.0.0.1", "--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=true")
	if _, err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if o.Access.AuthenticationKubeconfig != o.Kubeconfig || o.Access.AuthorizationKubeconfig != o.Kubeconfig || !o.Election.Enabled {
		t.Errorf("not taken: %+v", o)
	}
}

func TestBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"--kubeconfig":                                 nil,
		"--secure-port=70000":                          {"--kubeconfig=k", "--secure-port=70000"},
		"--tls-private-key-file":                       {"--kubeconfig=k", "--tls-cert-file=c"},
		"--leader-elect-resource-lock":                 {"--kubeconfig=k", "--leader-elect-resource-lock=endpoints"},
		"1.2 times the retryPeriod":                    {"--kubeconfig=k", "--leader-elect-renew-deadline=2100ms"},
		"--feature-gates=DefaultPodSysctls=true":       {"--kubeconfig=k", "--feature-gates=kube:AllBeta=false,AllAlpha=false,DefaultPodSysctls=true"},
		"--feature-gates=WatchList=f":                  {"--kubeconfig=k", "--feature-gates=kube:WatchList=false"},
		"--tls-min-version=VersionTLS10":               {"--kubeconfig=k", "--tls-min-version=VersionTLS10"},
		"--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA": {"--kubeconfig=k", "--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"},
		"--pod-max-in-unschedulable":                   {"--kubeconfig=k", "--pod-max-in-unschedulable-pods-duration=0s"},
		"--requestheader-group-headers":                {"--kubeconfig=k", "--requestheader-group-headers= "},
		"--requestheader-uid-headers":                  {"--kubeconfig=k", "--requestheader-uid-headers=X-Uid"},
		"--authorization-always-allow-paths=/a*b":      {"--kubeconfig=k", "--authorization-always-allow-paths=/a*b"},
		"no such file":                                 {"--kubeconfig=k", "--config=/nowhere.yaml"},
		`unknown field "nonsense"`:                     {"--kubeconfig=k", "--config=" + write(t, "nonsense: 1\n")},
		"read scheduler policy":                        {"--kubeconfig=k", "--policy-config-file=/nowhere.yaml"},
		"use only one of them":                         {"--kubeconfig=k", "--policy-config-file=a", "--config=b"},
	} {
		if _, err := parse(t, args...).Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error with %q, got %v", args, want, err)
		}
	}
}

// Every flag of kube-scheduler v1.37.0 is known.
func TestFlagsOfTheTwin(t *testing.T) {
	names := strings.Fields(`allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig authentication-skip-lookup
		authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure authorization-always-allow-paths authorization-kubeconfig
		authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl bind-address cert-dir client-ca-file config
		contention-profiling disable-http2-serving disabled-metrics emulated-version feature-gates http2-max-streams-per-connection kube-api-burst
		kube-api-content-type kube-api-qps kubeconfig leader-elect leader-elect-lease-duration leader-elect-renew-deadline
		leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period log-flush-frequency
		log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format master
		min-compatibility-version permit-address-sharing permit-port-sharing pod-max-in-unschedulable-pods-duration profiling
		requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
		requestheader-uid-headers requestheader-username-headers secure-port show-hidden-metrics-for-version tls-cert-file tls-cipher-suites
		tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key v vmodule write-config-to`)
	o := parse(t, "--kubeconfig=k", "--feature-gates=AllBeta=false,kube:AllAlpha=false,WatchList=true", "--kube-api-qps=5", "--authentication-skip-lookup")
	for _, name := range names {
		if o.Flags().Lookup(name) == nil {
			t.Errorf("--%s is not known", name)
		}
	}
	if _, err := o.Complete(); err != nil {
		t.Error(err)
	}
}
