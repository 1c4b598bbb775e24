package pod

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Bounds on Windows user names, and on the text of a GMSA credential.
const (
	maxCredential = 64 << 10
	maxDomain     = 256
	maxUser       = 104
)

var (
	netBIOSName = regexp.MustCompile(`^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`)
	domainName  = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)
)

// validateForOS checks that a pod that specifies its operating system sets no
// fields of the other one (KEP-2802).
func validateForOS(spec *core.PodSpec, at *field.Path) field.ErrorList {
	switch {
	case spec.OS == nil:
		return nil
	case spec.OS.Name == corev1.Linux:
		return validateLinux(spec, at)
	case spec.OS.Name == corev1.Windows:
		return validateWindows(spec, at)
	}
	return nil
}

func validateLinux(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	const text = "windows options cannot be set for a linux pod"
	if sc := spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		errs = append(errs, field.Forbidden(at.Child("securityContext", "windowsOptions"), text))
	}
	for c, path := range allContainers(spec, at) {
		if c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil {
			errs = append(errs, field.Forbidden(path.Child("securityContext", "windowsOptions"), text))
		}
	}
	return errs
}

// settableField is a field, and whether a pod sets it.
type settableField struct {
	name string
	set  bool
}

func validateWindows(spec *core.PodSpec, at *field.Path) field.ErrorList {
	errs := forbidOnWindows(at, []settableField{
		{"hostUsers", spec.HostUsers != nil}, {"hostPID", spec.HostPID}, {"hostIPC", spec.HostIPC},
		{"shareProcessNamespace", spec.ShareProcessNamespace != nil},
	})
	if sc := spec.SecurityContext; sc != nil {
		errs = append(errs, forbidOnWindows(at.Child("securityContext"), []settableField{
			{"appArmorProfile", sc.AppArmorProfile != nil}, {"seLinuxOptions", sc.SELinuxOptions != nil},
			{"seccompProfile", sc.SeccompProfile != nil},
			{"fsGroup", sc.FSGroup != nil}, {"fsGroupChangePolicy", sc.FSGroupChangePolicy != nil}, {"sysctls", len(sc.Sysctls) > 0},
			{"runAsUser", sc.RunAsUser != nil}, {"runAsGroup", sc.RunAsGroup != nil}, {"supplementalGroups", sc.SupplementalGroups != nil},
			{"supplementalGroupsPolicy", sc.SupplementalGroupsPolicy != nil}, {"seLinuxChangePolicy", sc.SELinuxChangePolicy != nil},
		})...)
	}
	for c, path := range allContainers(spec, at) {
		sc := c.SecurityContext
		if sc == nil {
			continue
		}
		errs = append(errs, forbidOnWindows(path.Child("securityContext"), []settableField{
			{"appArmorProfile", sc.AppArmorProfile != nil}, {"seLinuxOptions", sc.SELinuxOptions != nil},
			{"seccompProfile", sc.SeccompProfile != nil},
			{"capabilities", sc.Capabilities != nil}, {"readOnlyRootFilesystem", sc.ReadOnlyRootFilesystem != nil},
			{"privileged", sc.Privileged != nil},
			{"allowPrivilegeEscalation", sc.AllowPrivilegeEscalation != nil}, {"procMount", sc.ProcMount != nil},
			{"runAsUser", sc.RunAsUser != nil}, {"runAsGroup", sc.RunAsGroup != nil},
		})...)
	}
	return errs
}

func forbidOnWindows(at *field.Path, fields []settableField) field.ErrorList {
	var errs field.ErrorList
	for _, f := range fields {
		if f.set {
			errs = append(errs, field.Forbidden(at.Child(f.name), "cannot be set for a windows pod"))
		}
	}
	return errs
}

// validateWindowsOptions validates the Windows options of a security context.
func validateWindowsOptions(o *corev1.WindowsSecurityContextOptions, at *field.Path) field.ErrorList {
	if o == nil {
		return nil
	}
	var errs field.ErrorList
	if name := o.GMSACredentialSpecName; name != nil {
		errs = append(errs, check.Subdomain(*name, at.Child("gmsaCredentialSpecName"))...)
	}
	if text := o.GMSACredentialSpec; text != nil && *text == "" {
		errs = append(errs, field.Invalid(at.Child("gmsaCredentialSpec"), *text, "gmsaCredentialSpec cannot be an empty string"))
	} else if text != nil && len(*text) > maxCredential {
		errs = append(errs, field.Invalid(at.Child("gmsaCredentialSpec"), *text,
			fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", maxCredential>>10)))
	}
	if name := o.RunAsUserName; name != nil {
		for _, text := range windowsUser(*name) {
			errs = append(errs, field.Invalid(at.Child("runAsUserName"), *name, "runAsUserName"+text))
		}
	}
	return errs
}

// windowsUser is what is wrong with a user name, which may have a domain before a
// backslash.
func windowsUser(name string) []string {
	domain, user, hasDomain := strings.Cut(name, `\`)
	switch {
	case name == "":
		return []string{" cannot be an empty string"}
	case strings.ContainsFunc(name, unicode.IsControl):
		return []string{" cannot contain control characters"}
	case strings.Contains(user, `\`):
		return []string{" cannot contain more than one backslash"}
	case !hasDomain:
		domain, user = "", name
	}
	var texts []string
	if len(domain) >= maxDomain {
		texts = append(texts, fmt.Sprintf("'s Domain length must be under %d characters", maxDomain))
	}
	if hasDomain && !netBIOSName.MatchString(domain) && !domainName.MatchString(domain) {
		texts = append(texts, "'s Domain doesn't match the NetBios nor the DNS format")
	}
	if user == "" {
		texts = append(texts, "'s User cannot be empty")
	} else if len(user) > maxUser {
		texts = append(texts, fmt.Sprintf("'s User length must not be longer than %d characters", maxUser))
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		texts = append(texts, "'s User cannot contain only periods or spaces")
	}
	if strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`) {
		texts = append(texts, `'s User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
	return texts
}

// validateHostProcess checks that a pod with host processes consists of them only,
// and uses the host's network (KEP-1981).
func validateHostProcess(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	ofPod := hostProcess(spec.SecurityContext)
	all, ofHost := 0, 0
	for c, path := range allContainers(spec, at) {
		all++
		is := ofPod
		if sc := c.SecurityContext; sc != nil && sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil {
			is = sc.WindowsOptions.HostProcess
			if ofPod != nil && *ofPod != *is {
				errs = append(errs, field.Invalid(path.Child("securityContext", "windowsOptions", "hostProcess"), *is,
					fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *ofPod)))
			}
		}
		if is != nil && *is {
			ofHost++
		}
	}
	if ofHost > 0 && ofHost < all {
		errs = append(errs, field.Invalid(at, "",
			"If pod contains any hostProcess containers then all containers must be HostProcess containers"))
	}
	if ofHost > 0 && !spec.HostNetwork {
		errs = append(errs, field.Invalid(at.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return errs
}

func hostProcess(sc *corev1.PodSecurityContext) *bool {
	if sc == nil || sc.WindowsOptions == nil {
		return nil
	}
	return sc.WindowsOptions.HostProcess
}
