package cluster

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"kctl/proto/pki"
)

// writeKubeconfigs writes a kubeconfig for each user. Certificates are inside,
// so that a file can be copied to another machine by itself.
func writeKubeconfigs(l Layout, s *settings) error {
	for _, user := range users {
		data, err := kubeconfig(l, s, user)
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", user, err)
		}
		if err := pki.WriteFile(l.Kubeconfig(user), data); err != nil {
			return err
		}
	}
	return nil
}

func kubeconfig(l Layout, s *settings, user string) ([]byte, error) {
	ca, err := os.ReadFile(l.PKI("ca.crt"))
	if err != nil {
		return nil, err
	}
	pair, err := pki.Load(l.PKI(user+".crt"), l.PKI(user+".key"))
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "kctl",
		"clusters": []any{map[string]any{"name": "kctl", "cluster": map[string]any{
			"server": s.server(), "certificate-authority-data": ca}}},
		"users": []any{map[string]any{"name": user, "user": map[string]any{
			"client-certificate-data": pair.Cert, "client-key-data": pair.Key}}},
		"contexts": []any{map[string]any{"name": "kctl", "context": map[string]any{
			"cluster": "kctl", "user": user}}},
	})
}
