"""Why a candidate stands where it stands, and what each item adds; every line is traceable."""
