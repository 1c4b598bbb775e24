package kubelet

import (
	"context"
	"net"

	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// serve answers on the kubelet's port until ctx ends; listening is called once
// the port is known.
func (k *Kubelet) serve(ctx context.Context, listening func()) error {
	var ips []net.IP
	for _, ip := range k.hostIPs {
		ips = append(ips, net.ParseIP(ip))
	}
	cert, key, err := pki.ServingFiles(k.config.TLSCertFile, k.config.TLSKeyFile, k.config.CertDir, "kubelet", ips, []string{k.nodeName}, k.clock.Now())
	if err != nil {
		return err
	}
	reloader, err := pki.NewReloader(cert, key, k.clock)
	if err != nil {
		return err
	}
	tlsConfig, err := pki.ServerTLS(reloader, k.config.ClientCAFile)
	if err != nil {
		return err
	}
	return daemon.Serve(ctx, k.address(k.config.Port), k.checks(), tlsConfig, func(address net.Addr) {
		if tcp, ok := address.(*net.TCPAddr); ok {
			k.port.Store(int32(tcp.Port))
		}
		listening()
	})
}
