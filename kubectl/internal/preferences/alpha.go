package preferences

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// alphaPreference is the content of a kuberc as v1alpha1 has it: the defaults
// are called overrides, and the options flags. Its types are those of v1beta1 with
// other tags.
type alphaPreference struct {
	metav1.TypeMeta `json:",inline"`
	Overrides       []alphaDefaults         `json:"overrides"`
	Aliases         []alphaAlias            `json:"aliases"`
	Policy          clientcmdapi.PolicyType `json:"credentialPluginPolicy"`
	Allowlist       []AllowlistEntry        `json:"credentialPluginAllowlist"`
}

type alphaDefaults struct {
	Command string   `json:"command"`
	Options []Option `json:"flags"`
}

type alphaAlias struct {
	Name        string   `json:"name"`
	Command     string   `json:"command"`
	PrependArgs []string `json:"prependArgs"`
	AppendArgs  []string `json:"appendArgs"`
	Options     []Option `json:"flags"`
}

func (a *alphaPreference) preference() *Preference {
	p := &Preference{Policy: a.Policy, Allowlist: a.Allowlist}
	for _, each := range a.Overrides {
		p.Defaults = append(p.Defaults, Defaults(each))
	}
	for _, each := range a.Aliases {
		p.Aliases = append(p.Aliases, Alias(each))
	}
	return p
}
