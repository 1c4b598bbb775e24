package config

import "github.com/spf13/pflag"

// Aggregation are the flags for reaching aggregated API servers.
type Aggregation struct {
	ProxyCertFile, ProxyKeyFile string
	ToEndpoints                 bool
}

func (a *Aggregation) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.ProxyCertFile, "proxy-client-cert-file", a.ProxyCertFile,
		"client certificate for extension API servers (APIServices), which then trust this server to name the user; it must be signed by their "+
			"--requestheader-client-ca-file")
	fs.StringVar(&a.ProxyKeyFile, "proxy-client-key-file", a.ProxyKeyFile, "key of --proxy-client-cert-file")
	fs.BoolVar(&a.ToEndpoints, "enable-aggregator-routing", a.ToEndpoints,
		"send requests for extension API servers (APIServices) to the endpoints of their services instead of the cluster IP")
}

func (a *Aggregation) validate() error {
	return together("--proxy-client-cert-file", a.ProxyCertFile, "--proxy-client-key-file", a.ProxyKeyFile)
}
