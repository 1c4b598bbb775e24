// Package pullrecords records with whose credentials the node's images were pulled, so
// that not every pod that names a private image on the node can use it (KEP-2535;
// KubeletConfiguration, imagePullCredentialsVerificationPolicy).
//
// Its records are upstream's, in upstream's files below image_manager in the
// kubelet's directory, so that each kubelet understands the other's records. It
// asks no registry: a pod that may not use a present image has to pull it.
package pullrecords
