package preferences

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The kind of the file, and its versions.
const (
	Kind         = "Preference"
	groupVersion = "kubectl.config.k8s.io/v1beta1"
	alphaVersion = "kubectl.config.k8s.io/v1alpha1"
)

// Preference is the content of a kuberc, as v1beta1 has it.
type Preference struct {
	metav1.TypeMeta `json:",inline"`
	Defaults        []Defaults              `json:"defaults"`
	Aliases         []Alias                 `json:"aliases"`
	Policy          clientcmdapi.PolicyType `json:"credentialPluginPolicy,omitempty"`
	Allowlist       []AllowlistEntry        `json:"credentialPluginAllowlist,omitempty"`
}

// Defaults are the flags of a command that the command line does not set.
type Defaults struct {
	Command string   `json:"command"`
	Options []Option `json:"options"`
}

// Alias is another name of a command, with arguments and flags of its own.
type Alias struct {
	Name        string   `json:"name"`
	Command     string   `json:"command"`
	PrependArgs []string `json:"prependArgs,omitempty"`
	AppendArgs  []string `json:"appendArgs,omitempty"`
	Options     []Option `json:"options,omitempty"`
}

// Option is a flag, by its long name, and its value.
type Option struct {
	Name    string `json:"name"`
	Default string `json:"default"`
}

// AllowlistEntry is a credential plugin that may run: a path, or a name to look
// for on the PATH.
type AllowlistEntry struct {
	Command string `json:"command,omitempty"`
	// Name is the former name of Command; it is read, never written.
	Name string `json:"name,omitempty"`
}

// DeepCopyObject makes a Preference printable by printers.
func (p *Preference) DeepCopyObject() runtime.Object { c := *p; return &c }

// PluginPolicy says which credential plugins may run. If the file contradicts
// itself, it is an error, and none may run.
func (p *Preference) PluginPolicy() (clientcmdapi.PluginPolicy, error) {
	policy := clientcmdapi.PluginPolicy{PolicyType: p.Policy}
	switch p.Policy {
	case "", clientcmdapi.PluginPolicyAllowAll, clientcmdapi.PluginPolicyDenyAll:
		if p.Allowlist != nil {
			return policy, fmt.Errorf("misconfigured credential plugin allowlist: plugin policy is %q but allowlist is non-nil", p.Policy)
		}
	case clientcmdapi.PluginPolicyAllowlist:
		if len(p.Allowlist) == 0 {
			return policy, fmt.Errorf("credential plugin policy set to %q, but allowlist is unspecified", p.Policy)
		}
	default:
		return policy, fmt.Errorf("unknown plugin policy: %q", p.Policy)
	}
	for i, entry := range p.Allowlist {
		if entry.Command == "" {
			return policy, fmt.Errorf("misconfigured credential plugin allowlist: entry %d names no command", i)
		}
		policy.Allowlist = append(policy.Allowlist, clientcmdapi.AllowlistEntry{Command: entry.Command})
	}
	return policy, nil
}

var aliasName = regexp.MustCompile(`^[a-zA-Z]+$`)

// validateAliases checks the names of all aliases, whichever is called.
func (p *Preference) validateAliases() error {
	seen := map[string]bool{}
	for _, a := range p.Aliases {
		if !aliasName.MatchString(a.Name) {
			return fmt.Errorf("invalid alias name %q, can only include alphabetical characters", a.Name)
		}
		if seen[a.Name] {
			return fmt.Errorf("duplicate alias name %s", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}
