"""What every store on a relational database does alike. ADR 0019 says how one SQL serves two engines."""
