package policy

import "kctl/apiserver/internal/admission/configuration"

// Directory is the directory with policies and bindings that the plugin's configuration names
// (Kubernetes API, "ValidatingAdmissionPolicyConfiguration"); "" for none.
func Directory(files configuration.Files, plugin string) (string, error) {
	var settings struct {
		StaticManifestsDir string `json:"staticManifestsDir"`
	}
	kind := configuration.Kind{Kind: plugin + "Configuration", Versions: []string{"apiserver.config.k8s.io/v1"}}
	_, err := files.Decode(plugin, kind, &settings)
	return settings.StaticManifestsDir, err
}
