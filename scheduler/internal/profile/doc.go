// Package profile reads a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)
// and builds the profiles it describes. It reads strictly: an unknown field,
// an unknown plugin or an argument that isn't supported is an error that names
// it. What the configuration leaves out is as in upstream's default profile, as
// far as this scheduler has the plugins (README).
//
// The app calls it once, at start. It does no I/O besides reading the file.
package profile
