package describe

import (
	_ "embed"
	"strings"
	"sync"
	"text/template"

	corev1 "k8s.io/api/core/v1"
)

//go:embed volumesold.tmpl
var oldKinds string

// oldKindsTemplate describes volumes of kinds that Kubernetes itself mounted once, or that only
// its cloud providers and drivers know, in kubectl's words. Pods and persistent volumes may still
// name them; the fields of both are alike, but for the namespaces of secrets.
var oldKindsTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"join": strings.Join}).Parse(oldKinds))
})

// oldVolume writes a pod's volume of one of these kinds, and reports whether it is of one.
func (p *page) oldVolume(v *corev1.VolumeSource) bool {
	if v.GitRepo != nil { // which only pods can have
		p.line("Type", "GitRepo (a volume that is pulled from git when the pod is created)")
		p.line("Repository", "%s", v.GitRepo.Repository)
		p.line("Revision", "%s", v.GitRepo.Revision)
		return true
	}
	return p.oldKind(v, false)
}

// oldSource is oldVolume for persistent volumes.
func (p *page) oldSource(s *corev1.PersistentVolumeSource) bool { return p.oldKind(s, true) }

func (p *page) oldKind(source any, persistent bool) bool {
	var text strings.Builder
	err := oldKindsTemplate().Execute(&text, struct {
		Source     any
		Persistent bool
	}{source, persistent})
	if err != nil { // which the tests of all kinds rule out
		p.text("%v", err)
		return true
	}
	lines := strings.TrimLeft(text.String(), "\n")
	for line := range strings.Lines(lines) {
		p.text("%s", strings.TrimSuffix(line, "\n"))
	}
	return lines != ""
}
