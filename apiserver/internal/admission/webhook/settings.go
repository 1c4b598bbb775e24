package webhook

import (
	"fmt"
	"path/filepath"

	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/webhookclient"
)

// settings are the configuration of both plugins (Kubernetes API, "WebhookAdmissionConfiguration").
type settings struct {
	KubeConfigFile     string `json:"kubeConfigFile"`
	StaticManifestsDir string `json:"staticManifestsDir"`
}

func settingsOf(files configuration.Files, plugin string) (s settings, err error) {
	kind := configuration.Kind{Kind: "WebhookAdmissionConfiguration", Versions: []string{"apiserver.config.k8s.io/v1"}}
	_, err = files.Decode(plugin, kind, &s)
	return s, err
}

// Directory is the directory with webhooks that the plugin's configuration names; "" for none.
func Directory(files configuration.Files, plugin string) (string, error) {
	s, err := settingsOf(files, plugin)
	return s.StaticManifestsDir, err
}

// Credentials are what the plugin's configuration has the server show to webhooks; nil for nothing.
// onProblem hears of what is wrong with them later on.
func Credentials(files configuration.Files, plugin string, onProblem func(error)) (*webhookclient.Credentials, error) {
	s, err := settingsOf(files, plugin)
	if err != nil || s.KubeConfigFile == "" {
		return nil, err
	}
	if !filepath.IsAbs(s.KubeConfigFile) {
		return nil, fmt.Errorf("configuration of %s: kubeConfigFile: Invalid value: %q: must be an absolute file path", plugin, s.KubeConfigFile)
	}
	credentials, err := webhookclient.LoadCredentials(s.KubeConfigFile, onProblem)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", plugin, err)
	}
	return credentials, nil
}
