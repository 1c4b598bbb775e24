package config

import "github.com/spf13/pflag"

// Aggregation are the flags for reaching aggregated API servers.
type Aggregation struct {
	ProxyCertFile, ProxyKeyFile string
	ToEndpoints                 bool
}

func (a *Aggregation) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.ProxyCertFile, "proxy-client-cert-file", a.ProxyCertFile, "client certificate to show to other servers of the API (APIServices), which believe it who the user is; it must be of the authority in their --requestheader-client-ca-file")
	fs.StringVar(&a.ProxyKeyFile, "proxy-client-key-file", a.ProxyKeyFile, "key of --proxy-client-cert-file")
	fs.BoolVar(&a.ToEndpoints, "enable-aggregator-routing", a.ToEndpoints, "reach them by the endpoints of their services instead of the cluster address")
}

func (a *Aggregation) validate() error {
	return together("--proxy-client-cert-file", a.ProxyCertFile, "--proxy-client-key-file", a.ProxyKeyFile)
}
